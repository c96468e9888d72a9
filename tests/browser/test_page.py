"""The report in a real browser: nothing breaks, nothing is loaded, the numbers are those of the analysis."""

import re
from importlib.resources import files

import pytest

from cluster_fleet.page import page as fleet_page
from cluster_fleet.status import status_of
from cluster_fleet.store import Fleet
from cluster_words.amounts import format_ms
from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser import pages
from tests.browser.acting import (
    choose_everything,
    expect,
    open_every_finding,
    open_finding,
    wait_for_tip,
    wait_until_open,
    wait_until_painted,
    wait_until_ready,
)
from tests.browser.conftest import ACTION_TIMEOUT_MS
from tests.browser.looking import READERS
from tests.fleet.test_store import runs_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_every_finding_opens_its_evidence(kept):
    page = kept()

    assert open_every_finding(page) == 2
    for finding in page.locator("details.finding").all():
        expect(finding.locator(".drawn canvas").first).to_be_visible()
    # No step is pointed at: the legend tells the mean of all.
    expect(page.locator("#finding-slow_rank-5 .u-legend")).to_have_text(re.compile(r"rank 5:?\s*20\d\sms"))


@pytest.mark.parametrize(("theme", "language"), READERS)
def test_both_languages_and_themes_start_as_the_reader_has_them(viewer, theme, language):
    page = viewer.open(pages.degraded(), locale=language, color_scheme=theme)

    verdict = "性能劣化" if language == "zh-CN" else "Degraded"
    expect(page.locator(".badge")).to_have_text(verdict)
    assert page.title().split(" · ")[:2] == [verdict, "run1"]
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    open_finding(page)


def test_switches_change_language_and_theme_and_are_remembered(viewer):
    page = viewer.open(pages.degraded())
    open_finding(page)

    page.locator("#language").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    wait_until_ready(page)

    expect(page.locator("#findings h2")).to_have_text("作业变慢的原因")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_chinese_leaves_no_english_heading_behind(viewer):
    with_problem = builder.with_hostile_names(builder.degraded())
    page = viewer.open(page_of(with_problem), locale="zh-CN")
    expect(page.locator("#bars-sort option").first).to_have_text("卡序号")

    headings = page.locator("h1, h2, h3, th, .choice, nav a, option").all_inner_texts()
    english = {text for text in headings if re.fullmatch(r"[ -~]*[A-Za-z]{3}[ -~]*", text)}
    # Names of the trade stay as they are.
    expect(page.locator("#problems h2")).to_have_text("问题与无法判断之处")
    assert english <= {"HCCS", "RDMA", "PTA", "allreduce", "batchsendrecv", "reducescatter"}


def test_marks_of_a_finding_are_told_in_each_legend_and_absent_where_nothing_is_marked(kept, viewer):
    for page, number in ((kept(), 4), (viewer.open(page_of(builder.healthy())), 0)):
        wait_until_painted(page, "#map canvas", n_colours=2)
        expect(page.locator(".legend", has_text="named by a finding")).to_have_count(number)


def test_text_of_a_finding_shows_its_cost_and_evidence(kept):
    finding = open_finding(kept())

    for wanted in ("12.3 ms", "4.4 %", "201 ms", "165 ms", "900 µs", "15", "+22 %"):
        expect(finding).to_contain_text(wanted)


def test_top_n_are_the_largest_and_not_the_first(kept):
    page = kept(pages.LARGE)
    page.locator("#bars-sort").select_option("compute_only")
    page.locator("#bars-top").select_option("16")

    expect(page.locator("#bars-top")).to_have_value("16")

    box = page.locator("#bars canvas").bounding_box()
    page.locator("#bars canvas").hover(position={"x": 92, "y": box["height"] - 60})
    wait_for_tip(page, f"rank {builder.SLOW_RANK} = ")


def test_names_that_try_to_be_markup_stay_text(viewer):
    page = viewer.open(page_of(builder.with_hostile_names(builder.degraded())))
    open_finding(page)
    page.locator("#map canvas").hover(position={"x": 15, "y": 30})

    expect(page.locator("#problems")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("#tip")).to_contain_text("<script>alert(1)</script>")


@pytest.mark.parametrize(
    "result",
    [builder.unknown(), builder.healthy(builder.Job(1, 1, 1, 1)), builder.with_tables(builder.unknown(), {})],
    ids=["unknown", "one-rank-one-step", "no-tables"],
)
def test_pages_with_little_on_them_break_nothing(viewer, result):
    page = viewer.open(page_of(result))
    choose_everything(page)
    open_every_finding(page)
    expect(page.locator(".badge")).to_be_visible()


def test_a_baseline_shows_what_moved_first_and_everything_on_demand(viewer):
    page = viewer.open(page_of(builder.degraded(), builder.comparison()))

    rows = page.locator("#changes tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.filter(has_text="changed")).to_have_count(4)
    expect(page.locator("#changes")).to_contain_text("+22 %")
    page.locator("#baseline-show").select_option("all")
    expect(page.locator("#changes")).to_contain_text("within noise")


def test_keyboard_alone_opens_a_finding_and_reads_a_cell(kept):
    page = kept()
    finding = page.locator("details.finding").first
    finding.locator("> summary").focus()
    page.keyboard.press("Enter")
    wait_until_open(finding)

    page.locator("#heat canvas").focus()
    for rank in range(6):
        page.keyboard.press("ArrowRight")
        wait_for_tip(page, f"rank {rank} = host 1 / device {rank}\n")


def test_a_pair_of_hosts_opens_its_ranks_and_closes_again(kept):
    page = kept(pages.LARGE)
    canvas = page.locator("#matrix canvas")
    canvas.click(position={"x": 64, "y": 60})

    expect(page.locator(".matrix-head")).to_have_text(re.compile("hosts 1 → 2$"))
    page.locator(".matrix-head button").click()
    expect(page.locator(".matrix-head button")).to_have_count(0)
    expect(page.locator(".matrix-head")).to_have_count(1)


def test_bars_zoom_by_dragging_and_come_back(kept):
    page = kept(pages.LARGE)
    page.locator("#bars").scroll_into_view_if_needed()
    box = page.locator("#bars canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.up()

    page.locator("#bars .reset").click()
    expect(page.locator("#bars .reset")).to_have_count(0)


def test_a_link_to_a_finding_opens_it(kept):
    page = kept()
    page.evaluate("location.hash = '#finding-slow_link-2-10'")

    finding = page.locator("#finding-slow_link-2-10")
    wait_until_open(finding)
    expect(finding.locator(".drawn canvas")).to_have_count(1)


def test_printing_opens_every_finding_on_white_paper(viewer):
    page = viewer.open(pages.degraded(), color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")

    expect(page.locator("details.finding[open]")).to_have_count(2)
    expect(page.locator(".bar")).to_be_hidden()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    content = page.pdf(format="A4", print_background=True)
    assert content.startswith(b"%PDF")


def test_without_scripts_verdict_and_findings_are_there(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(pages.degraded())
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(ACTION_TIMEOUT_MS)
    page = context.new_page()
    page.goto(path.as_uri())

    expect(page.locator("h1")).to_have_text(re.compile(r"^A step takes 283\sms"))
    expect(page.locator("details.finding")).to_have_count(2)
    expect(page.locator("#bars")).to_be_hidden()
    context.close()


def test_small_screens_need_no_sideways_scrolling(viewer):
    page = viewer.open(pages.degraded(), width=390)
    open_every_finding(page)

    for width in (390, 820):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_of_the_fleet_needs_no_sideways_scrolling_on_a_telephone(browser, tmp_path):
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(60):
            fleet.add(one)
        (tmp_path / "fleet.html").write_text(fleet_page(fleet, status_of(fleet), "en"))
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto((tmp_path / "fleet.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


#: No value lies in the middle between two roundings.
TIMES_MS = [
    0.0, 0.0004, 0.0123, 0.9994, 0.9996, 1.0, 1.26, 9.94, 9.96, 78.93, 99.94, 99.96, 100.2, 123.4, 999.4,
    999.6, 1000.0, 1234.4, 9994.0, 9996.0, 10_000.0, 12_340.0, 987_654.0, -0.41, -12.34, -123.4, -1234.4,
]  # fmt: skip


def test_a_time_is_written_alike_in_a_chart_and_in_a_sentence(browser):
    script = files("cluster_analysis.reports").joinpath("assets/js/amounts.js").read_text("utf-8")
    page = browser.new_page()
    written = page.evaluate(f"(times) => {{ {script}\nreturn times.map(formatMs); }}", TIMES_MS)
    page.close()

    assert [one.replace("\u00a0", " ") for one in written] == [format_ms(one) for one in TIMES_MS]
