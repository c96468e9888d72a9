"""A hook of MkDocs: links of the documents that leave docs/ lead to the repository, or become plain text.

The repository's address is CLUSTER_PROFILER_URL, as for the README of a release. A link to a file that is not
there ends the build.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_OUTWARD = re.compile(r"(?<!!)\[([^\]\n]+)\]\(((?:\.\./)*(?:\.\./[^)\s]+|[^)\s:]+\.ipynb))\)")


def outward(text: str, page: Path, url: str) -> str:
    """Return a page's text with its links out of the documents made for the site.

    Args:
        text: Markdown of the page.
        page: Its file, below docs/.
        url: The repository's address, or nothing where the site has none.
    """

    def replaced(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        if not file.exists():
            raise FileNotFoundError(f"{page}: there is no {target}")
        inside = file.is_relative_to(ROOT / "docs") and file.suffix == ".md"
        if inside:
            return match.group(0)
        if not url:
            return words
        return f"[{words}]({url}/blob/HEAD/{file.relative_to(ROOT)}{'#' + anchor if anchor else ''})"

    return _OUTWARD.sub(replaced, text)


def on_page_markdown(markdown: str, *, page: object, **_: object) -> str:
    """Return the text that MkDocs makes a page of."""
    path = Path(str(page.file.abs_src_path))  # type: ignore[attr-defined]
    return outward(markdown, path, os.environ.get("CLUSTER_PROFILER_URL", "").rstrip("/"))
