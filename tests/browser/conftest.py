"""Debian's Chromium through playwright; without either the tests skip and say why."""

from __future__ import annotations

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


class Viewer:
    """Opens pages and keeps what went wrong: console errors, exceptions, requests."""

    def __init__(self, browser: Any, directory: Path) -> None:
        self._browser = browser
        self._directory = directory
        self.wrong: list[str] = []
        self._open: list[Any] = []

    def open(self, content: bytes, *, is_idle: bool = True, **context: Any) -> Any:
        """Open a page and wait until all of it is drawn; one that is never idle, until it answers."""
        path = self._directory / f"report-{len(self._open)}.html"
        path.write_bytes(content)
        # Without motion: a page that still scrolls is not yet where the next click expects it.
        defaults = {"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", "reduced_motion": "reduce"}
        opened = self._browser.new_context(**{**defaults, **context})
        opened.set_default_timeout(ACTION_TIMEOUT_MS)
        page = opened.new_page()
        if not is_idle:
            page.add_init_script("window.requestIdleCallback = () => {}")
        page.on("console", lambda message: self.wrong.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._requested(request.url, path.as_uri()))
        page.goto(path.as_uri())
        wait_until_ready(page, "drawn" if is_idle else "ready")
        self._open.append(opened)
        return page

    def _requested(self, url: str, own: str) -> None:
        if url != own:
            self.wrong.append(f"request: {url}")

    def close(self) -> None:
        for context in self._open:
            context.close()


@pytest.fixture
def viewer(browser: Any, tmp_path: Path) -> Iterator[Viewer]:
    viewer = Viewer(browser, tmp_path)
    yield viewer
    viewer.close()
    assert viewer.wrong == []


@pytest.fixture(scope="module")
def _kept(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Viewer, dict[int, Any]]]:
    viewer = Viewer(browser, tmp_path_factory.mktemp("kept"))
    yield viewer, {}
    viewer.close()


@pytest.fixture
def kept(_kept: tuple[Viewer, dict[int, Any]]) -> Iterator[Callable[[int], Any]]:
    """Gives the page of a job of that size, at its top, nothing chosen; a module opens it once."""
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
    assert viewer.wrong == []
