"""Pages held against the rules of axe-core: English on a wide screen, Chinese on a phone's."""

from functools import cache
from importlib import resources

import pytest

from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser import pages
from tests.browser.acting import open_every_finding

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PAGES = {
    "healthy": lambda: page_of(builder.healthy()),
    "unknown": lambda: page_of(builder.unknown()),
    "one-rank": lambda: page_of(builder.healthy(builder.Job(1, 1, 1, 3))),
    "before-and-after": lambda: page_of(builder.degraded(), builder.comparison()),
    "120-ranks": lambda: pages.degraded(pages.LARGE),
    "several-runs": pages.several_runs,
}


@cache
def axe() -> str:
    """Return axe-core, as a wheel brings it."""
    pytest.importorskip("axe_playwright_python", reason="axe is not installed: pip install '.[dev]'")
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


WIDE, NARROW = ("en-GB", 1280), ("zh-CN", 400)
#: A page has the same parts in both: each is looked at once, those with most to say in each of them.
LOOKS = [
    *(("healthy", *WIDE), ("unknown", *NARROW), ("one-rank", *NARROW), ("several-runs", *WIDE)),
    *(("before-and-after", *NARROW), ("120-ranks", *WIDE)),
]


@pytest.mark.parametrize(("name", "language", "width"), LOOKS)
def test_no_page_breaks_a_rule_of_axe(viewer, name, language, width):
    page = viewer.open(PAGES[name](), locale=language, width=width)
    open_every_finding(page)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    # Rows of a table are alike, and hundreds take axe seconds: all of them are looked at on one page.
    if name != "healthy":
        page.locator("tbody").evaluate_all(
            "all => all.forEach((one) => [...one.rows].slice(2).forEach((row) => row.remove()))"
        )
    # As the browser's own tools do: by its debugger, which the page's content security policy leaves alone.
    page.evaluate(axe())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")

    broken = {one["id"]: [node["html"] for node in one["nodes"]] for one in found["violations"]}
    assert found["passes"]
    assert broken == {}
