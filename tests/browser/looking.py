"""The ways in which people look at a page, and where they are on it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.browser import pages
from tests.browser.acting import wait_until_ready

WIDTHS = (1400, 400)
#: Theme and language of a reader.
READERS = (("light", "en-GB"), ("dark", "zh-CN"))
CHARTS = ("bars", "heat", "map", "matrix")


@dataclass(frozen=True)
class Look:
    """How somebody looks at a page."""

    n_ranks: int
    width: int
    reader: tuple[str, str]

    def __str__(self) -> str:
        theme, language = self.reader
        return f"{self.n_ranks}-ranks-{self.width}-px-{theme}-{language[:2]}"


def opened(viewer, look, anchor=""):
    theme, language = look.reader
    return viewer.open(
        pages.degraded(look.n_ranks), anchor=anchor, width=look.width, color_scheme=theme, locale=language
    )


def open_again(page, anchor):
    """Load the page as somebody does who got this address."""
    page.evaluate("anchor => history.replaceState(null, '', '#' + anchor)", anchor)
    page.reload()
    wait_until_ready(page)


def show(page, anchor):
    """Show what an address says, without loading the page again."""
    page.evaluate(
        "anchor => { history.replaceState(null, '', '#' + anchor); dispatchEvent(new Event('popstate')); }",
        anchor,
    )


def chosen(page):
    """Return the parts of the address behind "#"."""
    return set(page.evaluate("decodeURIComponent(location.hash.slice(1))").split("&"))


def stands_at_its_top(page, section):
    """Return whether a section's heading is the first thing below the bar, or the page ends before."""
    return page.evaluate(
        """id => { const box = (one) => one.getBoundingClientRect(), bar = document.querySelector(".bar");
            const top = box(document.getElementById(id)).top;
            const covered = getComputedStyle(bar).position === "sticky" ? box(bar).bottom : 0;
            const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
            return top >= covered - 1 && top < (isEnd ? innerHeight - 40 : covered + 60); }""",
        section,
    )
