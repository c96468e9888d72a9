"""Debian's Chromium through playwright; without either the tests skip and say why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.acting import wait_until_ready
from tests.browser.looking import READERS, Look, opened, show
from tools.chromium import ARGUMENTS, MISSING, find_chromium

#: Opening, clicking, printing: the page of ten thousand ranks on a loaded machine.
ACTION_TIMEOUT_MS = 60_000


# Not for the session: Playwright keeps an event loop running, in which no other test can start its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    chromium = find_chromium()
    if chromium is None:
        pytest.skip(MISSING)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


class Tabs:
    """Hands out tabs by language, and whether they are ever idle: to make one takes a quarter of a look.

    It keeps what went wrong in any of them: console errors, exceptions, requests for what no test wrote.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._free: defaultdict[tuple[str, bool], list[Any]] = defaultdict(list)
        self._wrong: list[str] = []
        self.written = {"about:blank"}

    def take(self, locale: str, is_idle: bool) -> Any:
        return (
            self._free[locale, is_idle].pop() if self._free[locale, is_idle] else self._new(locale, is_idle)
        )

    def _new(self, locale: str, is_idle: bool) -> Any:
        # Without motion: a page that still scrolls is not yet where the next click expects it.
        context = self._browser.new_context(locale=locale, reduced_motion="reduce")
        context.set_default_timeout(ACTION_TIMEOUT_MS)
        if not is_idle:
            context.add_init_script("window.requestIdleCallback = () => {}")
        page, wrong = context.new_page(), self._wrong
        page.on("console", lambda message: wrong.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda one: one.url in self.written or wrong.append(f"request: {one.url}"))
        return page

    def give_back(self, page: Any, kind: tuple[str, bool]) -> None:
        """Take a tab back, which knows nothing of what was chosen in it."""
        page.evaluate("localStorage.clear()")
        page.goto("about:blank")
        self._free[kind].append(page)

    def hold(self) -> None:
        """Hold that nothing went wrong since this was asked last."""
        wrong = self._wrong.copy()
        self._wrong.clear()
        assert wrong == []


class Viewer:
    """Opens pages, until it is closed."""

    def __init__(self, tabs: Tabs, directory: Path) -> None:
        self._tabs = tabs
        self._directory = directory
        self._open: list[tuple[Any, tuple[str, bool]]] = []

    def open(
        self, content: bytes, *, anchor: str = "", width: int = 1280, color_scheme: str = "light",
        locale: str = "en-GB", is_idle: bool = True,
    ) -> Any:  # fmt: skip
        """Open a page and wait until all of it is drawn; one that is never idle, until it answers."""
        path = self._directory / f"report-{len(self._open)}.html"
        path.write_bytes(content)
        self._tabs.written.add(path.as_uri())
        page = self._tabs.take(locale, is_idle)
        self._open.append((page, (locale, is_idle)))
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme=color_scheme)
        page.goto(f"{path.as_uri()}#{anchor}")
        wait_until_ready(page, "drawn" if is_idle else "ready")
        return page

    def close(self) -> None:
        for page, kind in self._open:
            self._tabs.give_back(page, kind)
        self._tabs.hold()


@pytest.fixture(scope="package")
def tabs(browser: Any) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def viewer(tabs: Tabs, tmp_path: Path) -> Iterator[Viewer]:
    viewer = Viewer(tabs, tmp_path)
    yield viewer
    viewer.close()


@pytest.fixture(scope="package")
def _kept(tabs: Tabs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Viewer, dict[int, Any]]:
    return Viewer(tabs, tmp_path_factory.mktemp("kept")), {}


@pytest.fixture
def kept(tabs: Tabs, _kept: tuple[Viewer, dict[int, Any]]) -> Iterator[Callable[[int], Any]]:
    """Gives the page of a job of that size, at its top, nothing chosen; it is opened once."""
    viewer, of_size = _kept

    def page_of(n_ranks: int = 32) -> Any:
        if n_ranks not in of_size:
            of_size[n_ranks] = opened(viewer, Look(n_ranks, 1280, READERS[0]))
        page = of_size[n_ranks]
        page.mouse.move(0, 0)
        show(page, "")
        page.evaluate("scrollTo(0, 0)")
        return page

    yield page_of
    tabs.hold()
