"""Takes the pictures of README and docs: the report of the demo's job in Chromium, so that no picture lies.

python -m tools.renew_picture [docs/images]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tools.chromium import ARGUMENTS, MISSING, find_chromium
from tools.renew_readme import analyse_demo

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = Path("docs/images")
#: Wide enough for the page's full layout; the README shows it at about this size.
WIDTH, HEIGHT = 1180, 1025
#: For a machine that does other things too.
TIMEOUT_MS = 60_000
#: The rank that the demo makes slow.
SLOW_RANK = 13


def take_pictures(browser: Browser, report: Path, folder: Path) -> None:
    """Write the pictures of a report into `folder`."""
    for name, (language, theme, anchor, take) in _PICTURES.items():
        page = _opened(browser, f"{report.as_uri()}#{anchor}", language, theme)
        take(page, folder / name)
        page.close()


def _first_screen(page: Page, path: Path) -> None:
    page.locator("details.finding summary").first.click()
    # The browser reports an opened finding some time after the click; only then is its evidence drawn.
    page.locator("details.finding[data-drawn=yes] .drawn canvas").first.wait_for()
    page.mouse.move(0, 0)
    page.screenshot(path=path)


def _panel(page: Page, path: Path) -> None:
    page.locator("#panel .u-wrap canvas").wait_for()
    page.screenshot(path=path)


def _section(page: Page, path: Path) -> None:
    page.locator("#matrix canvas").scroll_into_view_if_needed()
    page.locator("#communication").screenshot(path=path)


Take = Callable[["Page", Path], None]
#: Each picture by its file: language, theme, where in the page, and how it is taken.
_PICTURES: dict[str, tuple[str, str, str, Take]] = {
    "report.png": ("en-GB", "light", "", _first_screen),
    "report.zh.png": ("zh-CN", "dark", "", _first_screen),
    "rank.png": ("en-GB", "light", f"ranks&show=rank:{SLOW_RANK}", _panel),
    "matrix.png": ("en-GB", "light", "communication", _section),
}


@contextmanager
def _browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only this function needs a browser)

    chromium = find_chromium()
    if chromium is None:
        raise SystemExit(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


def _opened(browser: Browser, address: str, language: str, theme: str) -> Page:
    size = {"width": WIDTH, "height": HEIGHT}
    page = browser.new_page(
        viewport=size,
        locale=language,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(address)
    page.wait_for_function("() => window.clusterReport && window.clusterReport.drawn")
    return page


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="training-") as directory, _browser() as chromium:
        analyse_demo(directory)
        take_pictures(chromium, Path(directory, "run1", "cluster_analysis_output", "report.html"), target)
    for picture in sorted(target.glob("*.png")):
        print(f"{picture}: {picture.stat().st_size // 1000} kB")
