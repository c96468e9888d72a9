"""What a reader does on a page and what is waited for after it: no look at the page is taken too early."""

from __future__ import annotations

from typing import Any

#: A loaded machine needs long for a page of a thousand ranks; a page that never gets there fails anyway.
PATIENCE_MS = 20_000

#: The tip is right only once it says this; the argument is how it has to begin.
_TIP_BEGINS = "start => document.getElementById('tip').textContent.startsWith(start)"

#: Number of different colours on a canvas, 1 for an empty one. Read from a copy: the browser complains on the
#: console of a canvas whose pixels are read again and again.
_COLOURS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


#: Chooses each option of each select as a reader does, and looks a frame later at what is chosen then.
_CHOOSE_EVERYTHING = """async () => {
  const chosen = [], at = (i) => document.querySelectorAll("select")[i];
  for (let i = 0; at(i); i++) {
    const values = [...at(i).options].map((option) => option.value);
    for (const value of [...values.slice(1), ...values.slice(0, 1)]) {
      at(i).value = value;
      for (const name of ["input", "change"]) at(i).dispatchEvent(new Event(name, {bubbles: true}));
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      chosen.push([value, at(i).value]);
    }
  }
  return chosen;
}"""


def expect(target: Any) -> Any:
    """Return Playwright's assertion of a locator or page that looks again until PATIENCE_MS are over."""
    from playwright.sync_api import expect as playwright_expect  # noqa: PLC0415 (only with a browser)

    playwright_expect.set_options(timeout=PATIENCE_MS)
    return playwright_expect(target)


def wait_until_ready(page: Any, state: str = "drawn") -> None:
    """Wait until the page answers (`ready`), or until every chart is drawn."""
    page.wait_for_function("state => window.clusterReport && window.clusterReport[state]", arg=state)


def open_finding(page: Any, index: int = 0) -> Any:
    """Open a finding, wait until its evidence is drawn (it moves all that is below), return its locator."""
    finding = page.locator("details.finding").nth(index)
    finding.locator("> summary").click()
    wait_until_open(finding)
    return finding


def wait_until_open(finding: Any) -> None:
    """Wait until a finding is open and drawn: the browser says so some time after the click."""
    expect(finding).to_have_attribute("open", "")
    expect(finding).to_have_attribute("data-drawn", "yes")


def open_every_finding(page: Any) -> int:
    """Open all findings and return how many there are."""
    number: int = page.locator("details.finding").count()
    for index in range(number):
        open_finding(page, index)
    return number


def choose_everything(page: Any) -> int:
    """Choose each option of each filter and order, the first one last; return how many choices there were."""
    chosen: list[tuple[str, str]] = page.evaluate(_CHOOSE_EVERYTHING)
    assert [value for value, _ in chosen] == [shown for _, shown in chosen]
    return len(chosen)


def show_every_row(page: Any) -> None:
    """Press every button that shows the rest of a table."""
    buttons = page.locator("button.more")
    for left in range(buttons.count(), 0, -1):
        buttons.first.click()
        expect(buttons).to_have_count(left - 1)


def wait_until_painted(page: Any, selector: str, n_colours: int = 4) -> None:
    """Wait until a canvas shows that many colours."""
    expect(page.locator(selector)).to_be_attached()
    page.wait_for_function(
        f"([selector, wanted]) => ({_COLOURS})(document.querySelector(selector)) >= wanted",
        arg=[selector, n_colours],
        timeout=PATIENCE_MS,
    )


def wait_for_tip(page: Any, start: str) -> None:
    """Wait until the tip at the pointer or cursor begins with `start`."""
    expect(page.locator("#tip")).to_be_visible()
    page.wait_for_function(_TIP_BEGINS, arg=start, timeout=PATIENCE_MS)
