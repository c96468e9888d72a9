"""Templates of pages, and the style that all pages share. The only module that knows jinja2."""

from __future__ import annotations

from pathlib import Path

import jinja2

from cluster_run.said.line_breaks import kept_together

#: Colours and layout of all pages.
PAGE_STYLE = Path(__file__).with_name("page.css")


def templates(folder: Path) -> jinja2.Environment:
    """Return the environment that holds the templates of a folder; what they call is not in it yet."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_kept_together,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _kept_together(value: object) -> object:
    """Keep numbers and their units on one line; what is markup already stays as it is."""
    return kept_together(value) if type(value) is str else value
