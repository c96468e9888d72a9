"""Where things stand on pages of many shapes, on a phone, a tablet, a laptop and a wide screen."""

from collections.abc import Callable, Mapping
from functools import cache

import pytest

from cluster_analysis.result import AnalysisResult
from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser import pages
from tests.browser.looking import READERS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

WIDTHS = (390, 768, 1024, 1440)
LONG_NAME = "worker-of-a-large-pool-{}.rack-12.datacentre-eu-west-3.training.example.internal"
#: Every other step of many is paused: a list of 600 numbers.
MANY_STEPS = builder.Job(tp=2, dp=2, pp=1, n_steps=1200)


def _named(form: str) -> AnalysisResult:
    result = builder.degraded()
    return builder.with_addresses(
        result, {host: form.format(host) for host in result.topology.hosts.values()}
    )


def _of_many_steps() -> AnalysisResult:
    result = builder.degraded(MANY_STEPS)
    first = builder.replace(result.document.findings[0], steps=result.document.run.steps[::2])
    return builder.with_document(result, findings=(first, *result.document.findings[1:]))


SHAPES: Mapping[str, Callable[[], bytes]] = {
    "degraded": pages.degraded,
    "120-ranks": lambda: pages.degraded(pages.LARGE),
    "healthy": lambda: page_of(builder.healthy()),
    "unknown": lambda: page_of(builder.unknown()),
    "40-findings": lambda: page_of(builder.with_findings(builder.degraded(), 40)),
    "before-and-after": lambda: page_of(builder.degraded(), builder.comparison()),
    "long-names": lambda: page_of(_named(LONG_NAME)),
    "chinese-names": lambda: page_of(_named("训练节点-华东机房-{}号")),
    "many-steps": lambda: page_of(_of_many_steps()),
    "several-runs": pages.several_runs,
}

#: Keeps what is written on each canvas, and where. The click on the theme has all of them drawn again.
RECORD = """() => {
  const {prototype} = CanvasRenderingContext2D, {fillText} = prototype;
  window.written = new Map();
  prototype.fillText = function (text, x, y) {
    const at = this.getTransform(), size = this.measureText(text);
    const ends = [[x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent],
      [x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent]];
    const [one, other] = ends.map((end) => at.transformPoint(new DOMPoint(...end)));
    const [left, right] = [one.x, other.x].sort((a, b) => a - b);
    const [top, bottom] = [one.y, other.y].sort((a, b) => a - b);
    if (!window.written.has(this.canvas)) window.written.set(this.canvas, []);
    window.written.get(this.canvas).push({text, left, right, top, bottom});
    fillText.call(this, text, x, y);
  };
  document.getElementById("theme").click();
}"""

#: What stands where it should not: beyond the screen, cut, over another text, or too small to be seen.
MISPLACED = """() => {
  const wrong = [], wide = document.documentElement.clientWidth;
  const name = (one) => `${one.closest("[id]")?.id} ${one.tagName} ${one.textContent.slice(0, 30)}`;
  const isSeen = (one) => one.checkVisibility({visibilityProperty: true});
  const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const isInScrolled = (one) => one !== null && (scrolls(one) || isInScrolled(one.parentElement));
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  const covers = (a, b, by) => shared(a, b, "left", "right") > by && shared(a, b, "top", "bottom") > by;
  const pairs = (boxes, where, by) => boxes.sort((a, b) => a.top - b.top).forEach((one, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < one.bottom; j++) {
      if (covers(one, boxes[j], by)) wrong.push(`over each other, ${where}: ${one.text} | ${boxes[j].text}`);
    }
  });
  for (const one of document.querySelectorAll("main *, .bar *")) {
    if (!isSeen(one)) continue;
    const box = one.getBoundingClientRect();
    const isBeyond = box.right > wide + 1 && !isInScrolled(one.parentElement);
    if (isBeyond) wrong.push(`beyond the screen: ${name(one)}`);
    const isWider = one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1;
    // A table may scroll where the keyboard gets there.
    const mayScroll = getComputedStyle(one).overflowX === "visible" || one.matches("input, .table[tabindex]");
    if (isWider && !mayScroll) wrong.push(`cut or scrolled: ${name(one)}`);
    const isDrawn = one.matches(".meter, .step-bar, .ramp, canvas");
    if (isDrawn && (box.width < 30 || box.height < 4)) wrong.push(`too small: ${name(one)}`);
    if (isDrawn && box.height > 900) wrong.push(`taller than a screen: ${name(one)}`);
  }
  const texts = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, holder = node.parentElement, range = document.createRange();
    if (!node.data.trim() || !isSeen(holder) || holder.closest("option, svg, .table[tabindex]")) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      // Lines are higher than their letters.
      const {left, right} = box, top = box.top + box.height / 5, bottom = box.bottom - box.height / 5;
      texts.push({text: node.data.slice(0, 30), left, right, top, bottom});
    }
  }
  pairs(texts, "texts", 1);
  for (const [canvas, written] of window.written) {
    if (!canvas.isConnected || !isSeen(canvas)) continue;
    const isInside = (one) => Math.min(one.left, one.top) > -1
      && one.right < canvas.width + 1 && one.bottom < canvas.height + 1;
    const chart = name(canvas.parentElement);
    for (const one of written) if (!isInside(one)) wrong.push(`cut on ${chart}: ${one.text}`);
    pairs(written, chart, 0.5);
  }
  return wrong;
}"""

#: Names for those who hear the page, and hints, in English words; names of operators are not in any language.
ENGLISH = """() => [...document.querySelectorAll("body *")].flatMap((one) =>
  ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name) ?? "")
    .filter((text) => /[a-z]{3}/i.test(text) && !/[\u4e00-\u9fff]/.test(text) && !/^hcom_/.test(text)))"""


@cache
def rendered(shape: str) -> bytes:
    """Return the page of a shape."""
    return SHAPES[shape]()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_cut_or_covered_whatever_the_page_and_the_screen(viewer, shape, width):
    theme, language = READERS[WIDTHS.index(width) % 2]
    page = viewer.open(rendered(shape), width=width, color_scheme=theme, locale=language)
    page.evaluate(RECORD)

    assert page.evaluate(MISPLACED) == []
    if language.startswith("zh"):
        assert page.evaluate(ENGLISH) == []


@pytest.mark.parametrize(("language", "label"), [("en-GB", "verdict"), ("zh-CN", "结论")])
def test_on_a_phone_runs_are_cards_that_say_what_their_numbers_are(viewer, language, label):
    page = viewer.open(rendered("several-runs"), width=390, locale=language)
    width = page.locator("#list .table").evaluate("(one) => one.scrollWidth - one.clientWidth")
    before = page.locator("#list tbody td:nth-child(6)").first
    assert width <= 0
    assert before.evaluate("(one) => getComputedStyle(one, '::before').content") == f'"{label}"'
