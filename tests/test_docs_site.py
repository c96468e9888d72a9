"""The site of the documents builds strictly and without network, and asks for nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.renew_commands import made
from tools.site_links import outward

ROOT = Path(__file__).parents[1]
#: Every connection fails, and nothing is resolved.
WITHOUT_NETWORK = """
import socket
def refused(*_, **__):
    raise OSError("no network here")
socket.socket.connect = socket.getaddrinfo = refused
from mkdocs.__main__ import cli
cli()
"""


def build(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does, in a process without network."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK, "build", "--strict", "-d", str(output), *arguments],
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=170,
    )


@pytest.mark.slow
def test_the_site_builds_strictly_without_network_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = build(tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+rel="stylesheet"[^>]+href="https?:'
    )
    assert [page.name for page in pages if loaded.search(page.read_text("utf-8"))] == []
    styles = (tmp_path / "site").rglob("*.css")
    assert [one.name for one in styles if "url(http" in one.read_text("utf-8")] == []
    assert "Return a table as a DataFrame" in (tmp_path / "site" / "api.html").read_text("utf-8")


@pytest.mark.slow
def test_a_link_to_a_heading_that_is_not_there_ends_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Start\n\n[gone](#no-such-heading)\n")
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("nav:")[0]
    text = text.replace("docs_dir: docs", f"docs_dir: {docs}").replace("tools/", f"{ROOT}/tools/")
    (tmp_path / "mkdocs.yml").write_text(text)
    done = build(tmp_path / "site", "-f", str(tmp_path / "mkdocs.yml"))
    assert done.returncode != 0
    assert "no-such-heading" in done.stdout + done.stderr


def test_the_first_page_leads_to_every_page_that_a_user_needs() -> None:
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "index.md").read_text("utf-8")))
    for_users = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2].partition("- Inside:")[0]
    pages = set(re.findall(r"([\w/-]+\.md)$", for_users, re.MULTILINE)) - {"index.md"}
    assert len(pages) > 20
    assert pages - linked == set()


def test_links_out_of_the_documents_lead_to_the_repository_or_are_text() -> None:
    text = "see [examples](../inventories), [terms](glossary.md)"
    page = ROOT / "docs" / "quickstart.md"
    url = "https://git.example/ai/cluster-profiler"
    assert outward(text, page, url) == f"see [examples]({url}/blob/HEAD/inventories), [terms](glossary.md)"
    assert outward(text, page, "") == "see examples, [terms](glossary.md)"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        outward("[x](../nowhere)", page, url)


def test_the_reference_of_commands_and_the_man_pages_are_those_of_the_parsers() -> None:
    # Word by word: versions of argparse break lines elsewhere.
    stale = [path.name for path, text in made() if path.read_text("utf-8").split() != text.split()]
    assert stale == [], "make gold renews them"
