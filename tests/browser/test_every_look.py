"""What holds at both sizes of job, on wide and narrow screens, light and dark, in both languages."""

import pytest

from tests.analysis.reports import builder
from tests.browser.acting import expect, wait_until_painted
from tests.browser.conftest import Viewer
from tests.browser.looking import (
    CHARTS,
    READERS,
    WIDTHS,
    Look,
    chosen,
    open_again,
    opened,
    show,
    stands_at_its_top,
)
from tests.browser.pages import JOBS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

RANK = builder.SLOW_RANK
#: Texts whose contrast is below WCAG 2.1 AA: 4.5, or 3 for large letters. Colours are read from a canvas,
#: which knows all their forms; what is behind a text is what its ancestors paint, the furthest one first.
FAINT_TEXTS = """() => {
  const paint = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const painted = (colours) => {
    for (const one of colours) { paint.fillStyle = one; paint.fillRect(0, 0, 1, 1); }
    return [...paint.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = new Set();
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!says || !one.checkVisibility({visibilityProperty: true})) continue;
    const behind = [];
    for (let up = one; up; up = up.parentElement) behind.unshift(getComputedStyle(up).backgroundColor);
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const both = [painted(["#fff", ...behind]), painted([style.color])].map(luminance);
    const contrast = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast >= (isLarge ? 3 : 4.5)) continue;
    faint.add([contrast.toFixed(2), one.tagName, one.className, one.textContent.slice(0, 30)].join(" "));
  }
  return [...faint];
}"""


#: Each size is looked at on each screen and by each reader, and each reader has each screen.
LOOKS = [
    Look(n_ranks, WIDTHS[at], READERS[at ^ is_large])
    for is_large, n_ranks in enumerate(JOBS)
    for at in range(len(WIDTHS))
]


@pytest.fixture(scope="module", params=LOOKS, ids=str)
def seen(request, tabs, tmp_path_factory):
    """One page for each look; the tests share it, as opening it takes longer than most of them."""
    viewer = Viewer(tabs, tmp_path_factory.mktemp("seen"))
    yield request.param, opened(viewer, request.param)
    viewer.close()


@pytest.fixture
def everywhere(seen):
    """The page of each look, at its top and with nothing chosen."""
    _, page = seen
    show(page, "")
    page.evaluate("scrollTo(0, 0)")
    return page


def test_every_link_of_the_bar_leads_to_the_top_of_its_section(everywhere):
    page = everywhere
    sections = page.locator(".bar nav a").evaluate_all("links => links.map((link) => link.hash.slice(1))")

    assert len(sections) >= 6
    for section in (*sections, sections[0], sections[-1]):
        page.locator(f'.bar nav a[href="#{section}"]').click()
        assert stands_at_its_top(page, section), section
        assert section in chosen(page)


def test_an_address_with_a_section_opens_the_page_there(everywhere, seen):
    page = everywhere
    section = "method" if seen[0].width == max(WIDTHS) else "cluster"
    open_again(page, section)
    assert stands_at_its_top(page, section)


def test_no_section_of_the_whole_page_is_blank(everywhere, seen):
    page = everywhere
    for chart in CHARTS:
        wait_until_painted(page, f"#{chart} canvas")
    for table in ("links", "groups", "operators", "stage-bars"):
        expect(page.locator(f"#{table} tbody tr").nth(1)).to_be_visible()


def test_nothing_is_cut_off_at_the_side(everywhere):
    page = everywhere
    show(page, f"show=rank:{RANK}&open=slow_rank-{RANK}")
    expect(page.locator("#panel")).to_be_visible()
    cut = page.evaluate(
        """() => [...document.querySelectorAll("main *, .bar *, #panel *")].filter((one) => {
            const box = one.getBoundingClientRect(), style = getComputedStyle(one);
            if (!box.width || style.visibility === "hidden" || one.closest("[hidden]")) return false;
            const isClipped = one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1;
            return box.right > innerWidth + 1
              || (isClipped && style.overflowX !== "visible" && style.textOverflow !== "ellipsis");
          }).map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 40)}`)"""
    )
    assert cut == []


def test_search_by_keyboard_opens_the_panel_of_a_rank_and_escape_closes_it(everywhere, seen):
    page = everywhere
    page.keyboard.press("/")
    page.keyboard.type(f"{RANK}")
    first = page.locator("#found li").first
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")

    panel = page.locator("#panel")
    locator = page.evaluate(f"clusterReport.run.locator({RANK})")
    expect(panel.locator("h2")).to_have_text(locator)
    expect(panel.locator(".u-wrap canvas")).to_be_visible()
    assert panel.locator("section").count() >= 6
    expect(panel.locator("tr", has_text="PTA")).to_contain_text("26.0 GB")
    assert f"show=rank:{RANK}" in chosen(page)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert not any(part.startswith("show=") for part in chosen(page))


def test_all_text_stands_out_from_what_is_behind_it(everywhere):
    show(everywhere, f"show=rank:{RANK}&open=slow_rank-{RANK}")
    expect(everywhere.locator("#panel")).to_be_visible()

    assert everywhere.evaluate(FAINT_TEXTS) == []
