"""Puts pages together: our own scripts and styles, and the policy that lets only these run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from cluster_run.files import utf8
from cluster_words.headings import words_of_page
from cluster_words.pages import PAGE_STYLE
from cluster_words.texts import Template

#: Templates, scripts and styles of pages.
ASSETS = Path(__file__).parents[1] / "assets"
#: Words under these prefixes are used by templates only and need not be in the payload.
_TEMPLATE_ONLY = ("headline.", "subject.", "method.", "nav.", "described.", "picture.", "absent.")
#: Scripts of every page with charts; each may use what the ones before it define.
DRAWING = (
    "js/data.js", "js/page.js", "js/amounts.js", "js/drawing.js", "js/address.js", "js/paint.js",
    "js/strip.js",
)  # fmt: skip
STYLES = (str(PAGE_STYLE), "css/charts.css", "css/panel.css", "css/print.css")


def words_of_scripts() -> Mapping[str, Template]:
    """Return the words that scripts of a page use."""
    return {key: said for key, said in words_of_page().items() if not key.startswith(_TEMPLATE_ONLY)}


def assembled(
    fill: Callable[..., str],
    scripts: Sequence[str],
    styles: Sequence[str],
    values: Mapping[str, object],
    vendored: Sequence[str] = (),
) -> bytes:
    """Return a page as UTF-8: what `fill` makes of values, and of files of `assets`.

    Our own scripts are put together in the order given: each may use what the ones before it define.

    Raises:
        ValueError: a file would end its own element.
    """
    own = "(() => {\n" + "\n".join(map(_asset, scripts)) + "\n})();\n"
    every = (*map(_licensed, vendored), own)
    page = fill(
        **values,
        scripts=[_trusted(text) for text in every],
        styles=_trusted("\n".join(map(_asset, styles))),
        policy=_policy(every),
    )
    return utf8(page)


def _asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")


def _licensed(name: str) -> str:
    """Return a vendored script behind the text of its licence."""
    licence = _asset(f"{name.rpartition('/')[0]}/LICENSE")
    return f"/*!\n{licence}*/\n{_asset(name)}"


def _trusted(text: str) -> Markup:
    """Mark one of our own files as ready for the page. It must not be able to end its own element."""
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError("a script or style of the report would end its own element")
    return Markup(text)  # noqa: S704 (our own files, no data)


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: only these scripts run, and nothing is loaded from anywhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src {hashes}"
