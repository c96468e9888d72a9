"""The report in a real browser: nothing breaks, nothing is loaded, the numbers are those of the analysis."""

import json
import math
import re

import pytest

from cluster_analysis.findings import document_to_json
from cluster_analysis.reports import html
from tests.analysis.reports import builder
from tests.browser.conftest import SCREENSHOTS

pytestmark = pytest.mark.slow

SMALL = builder.Job()
LARGE = builder.Job(tp=8, dp=32, pp=4, n_steps=10)
JOBS = pytest.mark.parametrize("job", [SMALL, LARGE], ids=["32-ranks", "1024-ranks"])


def show_all(page):
    page.evaluate("clusterReport.showAll()")
    page.wait_for_timeout(100)


def painted(page, canvas: str) -> int:
    """Number of different colours on a canvas: 1 for an empty one."""
    return page.evaluate(
        """selector => {
             const canvas = document.querySelector(selector);
             const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
             return new Set(new Uint32Array(data.buffer)).size;
           }""",
        canvas,
    )


@JOBS
def test_every_chart_is_drawn_and_nothing_is_requested(viewer, job):
    page = viewer.open(html.render(builder.degraded(job)))
    show_all(page)

    for chart in ("bars", "heat", "map", "matrix"):
        assert painted(page, f"#{chart} canvas") > 3, chart
    for table in ("links", "groups", "operators", "stage-bars"):
        assert page.locator(f"#{table} tbody tr").count() > 1, table
    page.screenshot(path=SCREENSHOTS / f"{job.n_ranks}-ranks.png", full_page=True)


@JOBS
def test_every_finding_opens_its_evidence(viewer, job):
    page = viewer.open(html.render(builder.degraded(job)))
    findings = page.locator("details.finding")

    assert findings.count() == 2
    for index in range(findings.count()):
        findings.nth(index).locator("summary").click()
        assert findings.nth(index).locator(".drawn canvas").count() >= 1
    assert "rank 5" in page.locator("#finding-slow_rank-5 .u-legend").inner_text()
    page.screenshot(path=SCREENSHOTS / f"{job.n_ranks}-findings.png", full_page=True)


@JOBS
def test_every_filter_and_order_can_be_chosen(viewer, job):
    page = viewer.open(html.render(builder.degraded(job)))
    show_all(page)

    for select in page.locator("select").all():
        values = select.evaluate("select => [...select.options].map(option => option.value)")
        assert len(values) >= 1
        for value in [*values[1:], values[0]]:
            select.select_option(value)
        page.wait_for_timeout(20)
    while page.locator("button.more").count():
        page.locator("button.more").first.click()
    for button in page.locator("th button").all()[:12]:
        button.click()


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_languages_and_themes_start_as_the_reader_has_them(viewer, language, theme):
    page = viewer.open(html.render(builder.degraded()), locale=language, color_scheme=theme)

    badge = page.locator(".badge").inner_text().strip()
    assert badge == ("性能劣化" if language == "zh-CN" else "Degraded")
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.locator("details.finding summary").first.click()
    show_all(page)
    page.screenshot(path=SCREENSHOTS / f"{language}-{theme}.png", full_page=True)


def test_switches_change_language_and_theme_and_are_remembered(viewer):
    page = viewer.open(html.render(builder.degraded()))
    page.locator("details.finding summary").first.click()
    show_all(page)

    page.locator("#language").click()
    page.locator("#theme").click()
    page.reload()
    page.wait_for_function("window.clusterReport && window.clusterReport.ready")

    assert page.locator("#findings h2").inner_text() == "变慢的原因"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_chinese_leaves_no_english_heading_behind(viewer):
    page = viewer.open(html.render(builder.degraded()), locale="zh-CN")
    show_all(page)

    headings = page.locator("h1, h2, h3, th, .choice, nav a, option").all_inner_texts()
    english = {text for text in headings if re.fullmatch(r"[ -~]*[A-Za-z]{3}[ -~]*", text)}
    # Names of the trade stay as they are.
    assert english <= {"HCCS", "RDMA", "allreduce", "batchsendrecv", "reducescatter"}


@JOBS
def test_numbers_on_the_page_are_those_of_findings_and_tables(viewer, job):
    result = builder.degraded(job)
    page = viewer.open(html.render(result))

    assert page.evaluate("clusterReport.run.document") == json.loads(document_to_json(result.document))
    rows = (
        result.tables["steps"].slice(0, 200).to_pylist()
        + result.tables["steps"].slice(job.n_ranks).to_pylist()[:50]
    )
    asked = [[row["rank"], row["step"]] for row in rows]
    for name, column in (("computing", "computing_us"), ("bubble", "bubble_us"), ("free", "free_us")):
        values = page.evaluate(
            """([name, asked]) => { const run = clusterReport.run;
                const bin = (step) => run.bins.findIndex((one) => one[0] === step);
                return asked.map(([rank, step]) => run.value(name, rank, bin(step))); }""",
            [name, asked],
        )
        assert values == pytest.approx([row[column] for row in rows], rel=1e-6)


def test_text_of_a_finding_shows_its_cost_and_evidence(viewer):
    result = builder.degraded()
    page = viewer.open(html.render(result))
    page.locator("details.finding summary").first.click()

    text = page.locator("#finding-slow_rank-5").inner_text()
    for wanted in ("12.3 ms", "4.4 %", "201 ms", "165 ms", "900 µs", "15", "+22 %"):
        assert wanted in text


def test_top_n_are_the_largest_and_not_the_first(viewer):
    page = viewer.open(html.render(builder.degraded(LARGE)))
    show_all(page)
    page.locator("#bars-sort").select_option("compute_only")
    page.locator("#bars-top").select_option("16")

    box = page.locator("#bars canvas").bounding_box()
    page.locator("#bars canvas").hover(position={"x": 75, "y": box["height"] - 60})
    assert page.locator("#tip").inner_text().startswith(f"rank {builder.SLOW_RANK}\n")


def test_names_that_try_to_be_markup_stay_text(viewer):
    page = viewer.open(html.render(builder.with_hostile_names(builder.degraded())))
    show_all(page)
    page.locator("details.finding summary").first.click()
    page.locator("#map canvas").hover(position={"x": 15, "y": 30})

    assert "<script>alert(1)</script>" in page.locator("#problems").inner_text()
    assert "<script>alert(1)</script>" in page.locator("#tip").inner_text()
    page.screenshot(path=SCREENSHOTS / "hostile-names.png", full_page=True)


@pytest.mark.parametrize(
    "result",
    [
        builder.healthy(),
        builder.unknown(),
        builder.healthy(builder.Job(1, 1, 1, 1)),
        builder.with_tables(builder.unknown(), {}),
    ],
    ids=["healthy", "unknown", "one-rank-one-step", "no-tables"],
)
def test_pages_with_little_on_them_break_nothing(viewer, result, request):
    page = viewer.open(html.render(result))
    show_all(page)
    for select in page.locator("select").all():
        for value in select.evaluate("select => [...select.options].map(option => option.value)"):
            select.select_option(value)

    page.screenshot(path=SCREENSHOTS / f"{request.node.callspec.id}.png", full_page=True)


def test_a_baseline_shows_what_moved_first_and_everything_on_demand(viewer):
    page = viewer.open(html.render(builder.degraded(), builder.comparison()))
    show_all(page)

    assert page.locator("#changes tbody tr").count() == 4
    assert page.locator("#changes").inner_text().count("changed") == 4
    assert "+22 %" in page.locator("#changes").inner_text()
    page.locator("#baseline-show").select_option("all")
    assert "within noise" in page.locator("#changes").inner_text()
    page.screenshot(path=SCREENSHOTS / "baseline.png", full_page=True)


def test_keyboard_alone_opens_a_finding_and_reads_a_cell(viewer):
    page = viewer.open(html.render(builder.degraded()))
    show_all(page)
    page.locator("details.finding summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.finding").first.get_attribute("open") is not None

    page.locator("#heat canvas").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.locator("#tip").inner_text().startswith("rank 5\n")


def test_a_pair_of_hosts_opens_its_ranks_and_closes_again(viewer):
    page = viewer.open(html.render(builder.degraded(LARGE)))
    show_all(page)
    canvas = page.locator("#matrix canvas")
    canvas.click(position={"x": 61, "y": 16})

    assert page.locator(".matrix-head").inner_text().endswith("hosts 1 → 2")
    page.locator(".matrix-head button").click()
    assert page.locator(".matrix-head").count() == 1
    assert page.locator(".matrix-head button").count() == 0


def test_bars_zoom_by_dragging_and_come_back(viewer):
    page = viewer.open(html.render(builder.degraded(LARGE)))
    show_all(page)
    page.locator("#bars").scroll_into_view_if_needed()
    box = page.locator("#bars canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.up()

    page.locator("#bars .reset").click()
    assert page.locator("#bars .reset").count() == 0


def test_a_link_to_a_finding_opens_it(viewer):
    page = viewer.open(html.render(builder.degraded()))
    page.evaluate("location.hash = '#finding-slow_link-2-10'")
    page.wait_for_function("document.getElementById('finding-slow_link-2-10').open")

    assert page.locator("#finding-slow_link-2-10 .drawn canvas").count() == 1


def test_printing_opens_every_finding_on_white_paper(viewer):
    page = viewer.open(html.render(builder.degraded()), color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")

    assert page.locator("details.finding[open]").count() == 2
    assert not page.locator(".bar").is_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    content = page.pdf(path=SCREENSHOTS / "printed.pdf", format="A4", print_background=True)
    assert content.startswith(b"%PDF")


def test_without_scripts_verdict_and_findings_are_there(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(html.render(builder.degraded()))
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())

    assert page.locator("h1").inner_text().startswith("A step takes 283 ms")
    assert page.locator("details.finding").count() == 2
    assert not page.locator("#bars").is_visible()
    page.screenshot(path=SCREENSHOTS / "no-script.png", full_page=True)
    context.close()


@pytest.mark.parametrize("width", [390, 820])
def test_small_screens_need_no_sideways_scrolling(viewer, width):
    page = viewer.open(html.render(builder.degraded()), viewport={"width": width, "height": 800})
    show_all(page)
    page.locator("details.finding summary").first.click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=SCREENSHOTS / f"width-{width}.png", full_page=True)


def test_contrast_of_text_is_enough_in_both_themes(viewer):
    for theme in ("light", "dark"):
        page = viewer.open(html.render(builder.degraded()), color_scheme=theme)
        style = "name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()"
        for ink in ("ink", "muted", "degraded", "critical", "healthy", "unknown", "accent"):
            ratio = contrast(page.evaluate(style, ink), page.evaluate(style, "paper"))
            assert ratio >= 4.5, (theme, ink, ratio)


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio of two #rrggbb colours."""

    def luminance(text: str) -> float:
        channels = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else math.pow((c + 0.055) / 1.055, 2.4) for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
