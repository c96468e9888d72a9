"""The README shows what the commands really print, and names only what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_run.errors import ExitCode
from tools.renew_readme import demo_output, with_demo_output

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_s_job_prints() -> None:
    assert with_demo_output(README, demo_output()) == README, "renew it: make gold"


def test_every_relative_link_of_the_documents_leads_to_a_file() -> None:
    documents = [
        ROOT / "README.md",
        ROOT / "README.zh.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
    links = [
        (document, target)
        for document in documents
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text())
    ]
    assert links
    missing = [
        f"{document.name}: {target}" for document, target in links if not (document.parent / target).exists()
    ]
    assert not missing


def test_the_chinese_readme_names_the_same_commands_options_kinds_and_documents() -> None:
    chinese = (ROOT / "README.zh.md").read_text()

    def facts(text: str) -> set[str]:
        text = re.sub(r"<!-- demo:begin.*?demo:end -->", "", text, flags=re.DOTALL)
        pages = {page.replace("docs/zh/", "docs/") for page in re.findall(r"\]\((docs/[^)]+\.md)\)", text)}
        return {*re.findall(r"`([^`\n]+)`", text), *pages}

    assert facts(chinese) == facts(README)


def test_the_exit_codes_of_the_readme_are_those_of_the_code() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)} == set(
        map(int, ExitCode)
    )


def test_every_option_of_the_contract_is_in_a_help_text() -> None:
    wanted = {
        "cluster_collect": "--inventory --rank-table --output --limit --jobs --dry-run --check --what --json"
        " -v -q",
        "cluster_analysis": "--output --baseline --steps --ranks --format --report --no-report --fail-on"
        " --scheduler --show-addresses --open -v -q",
        "cluster_simulate": "--scenario",
        "cluster_hook": "-h",
    }
    for module, options in wanted.items():
        argv = [sys.executable, "-m", module, "--help"]
        text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert [option for option in options.split() if option not in text] == [], module
