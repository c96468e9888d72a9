"""Finding one's way on the page: links, search, panels, and all of it kept in the address.

Both sizes of job, wide and narrow, light and dark, English and Chinese.
"""

import re

import pytest

from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser import pages
from tests.browser.acting import expect, open_finding, wait_for_tip, wait_until_painted
from tests.browser.looking import CHARTS, chosen, show, stands_at_its_top
from tests.browser.pages import JOBS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

#: What a mouse does needs no narrow screen.
BOTH_SIZES = pytest.mark.parametrize("n_ranks", JOBS, ids=lambda n_ranks: f"{n_ranks}-ranks")
RANK = builder.SLOW_RANK


def test_a_page_answers_before_all_is_drawn_and_draws_what_is_scrolled_or_gone_to(viewer):
    def drawn(page):
        return {chart for chart in CHARTS if page.locator(f"#{chart} canvas").count()}

    page = viewer.open(pages.degraded(pages.LARGE), is_idle=False)
    assert drawn(page) < set(CHARTS)
    page.locator("#heat").evaluate("chart => chart.scrollIntoView()")
    wait_until_painted(page, "#heat canvas")
    assert drawn(page) < set(CHARTS)
    page.locator('.bar nav a[href="#method"]').click()
    assert drawn(page) == set(CHARTS)
    assert stands_at_its_top(page, "method")


def test_search_finds_hosts_devices_links_groups_operators_and_findings(kept):
    page = kept()
    box, first = page.locator("#search"), page.locator("#found li").first
    for text, wanted in (
        ("host 2", "host 2"),
        ("host 2 device 3", "rank 11 = host 2 / device 3"),
        ("2-10", "rank 2 = host 1 / device 2 → rank 10 = host 2 / device 2"),
        ("tp", "TP"),
        ("matmul", "MatMul"),
        ("slow link", "Slow link 2"),
        ("no such thing", "Nothing of that name"),
    ):
        box.fill(text)
        expect(first).to_contain_text(wanted)


@BOTH_SIZES
def test_a_click_on_a_bar_a_cell_a_dot_or_a_row_opens_a_panel(kept, n_ranks):
    page = kept(n_ranks)
    title = page.locator("#panel h2")
    for chart, position in (("bars", (200, 200)), ("heat", (300, 60)), ("map", (40, 30))):
        page.locator(f"#{chart} canvas").click(position={"x": position[0], "y": position[1]})
        expect(title).to_have_text(re.compile(r"^rank \d+ = host \d+ / device \d+$"))
        page.keyboard.press("Escape")
    assert not any(part.startswith("step=") for part in chosen(page))

    page.locator("#links tbody tr").first.click()
    expect(title).to_have_text(re.compile("^rank .+ → rank .+"))
    page.keyboard.press("Escape")
    page.locator("#groups tbody tr").first.click()
    expect(page.locator("#panel .members button").first).to_be_visible()
    page.locator("#panel .members button").first.click()
    expect(title).to_have_text(re.compile("^rank "))
    page.keyboard.press("Escape")
    dot = open_finding(page).locator(".drawn canvas").first
    places = dot.evaluate("canvas => [canvas.clientWidth, canvas.clientHeight]")
    # The rank of the finding is the dot furthest to the right.
    for x in range(places[0] - 10, places[0] - 60, -3):
        dot.click(position={"x": x, "y": 48})
        if page.locator("#panel").is_visible():
            break
    expect(title).to_have_text(f"rank {RANK} = host 1 / device {RANK}")


def test_all_that_a_reader_chose_is_in_the_address_and_opens_again_from_it(kept, viewer):
    page = kept(pages.LARGE)
    wanted = {
        "bars-sort": "free",
        "bars-step": "12",
        "heat-metric": "wait",
        "heat-scale": "value",
        "map-arrange": "grid",
        "matrix-metric": "time",
    }
    for name, value in wanted.items():
        page.locator(f"#{name}").select_option(value)
    drag(page, "#bars canvas", (200, 100), (420, 100))
    expect(page.locator("#bars .reset")).to_be_visible()
    page.locator("#groups th button").nth(2).click()
    open_finding(page, 1)
    page.locator("#heat canvas").click(position={"x": 300, "y": 60})
    title = page.locator("#panel h2").inner_text()

    again = viewer.open(pages.degraded(pages.LARGE), anchor=page.url.partition("#")[2])
    for name, value in wanted.items():
        expect(again.locator(f"#{name}")).to_have_value(value)
    expect(again.locator("#bars .reset")).to_be_visible()
    expect(again.locator("#groups th").nth(2)).to_have_attribute("aria-sort", "descending")
    expect(again.locator("details.finding").nth(1)).to_have_attribute("open", "")
    expect(again.locator("#panel h2")).to_have_text(title)
    assert again.locator("#panel-step").input_value() != ""
    assert chosen(again) == chosen(page)


def test_back_returns_to_what_was_shown_before(kept):
    page = kept()
    page.locator('.bar nav a[href="#cluster"]').click()
    page.evaluate("() => document.querySelector('#links tbody tr').click()")
    expect(page.locator("#panel")).to_be_visible()
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()
    page.go_forward()
    expect(page.locator("#panel")).to_be_visible()


def test_the_link_and_the_ticket_are_copied(kept):
    page = kept()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator('.bar nav a[href="#cluster"]').click()
    page.locator("#copy-link").click()
    expect(page.locator("#said")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.locator("#copy-ticket").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('## Degraded'))")


def test_charts_show_the_metric_of_the_costliest_finding_first(kept):
    page = kept(pages.LARGE)
    for chart in ("heat", "map"):
        expect(page.locator(f"#{chart}-metric")).to_have_value("computing")
    expect(page.locator("#matrix-metric")).to_have_value("excess")
    # What a finding names is first among groups, and marked.
    expect(page.locator("#groups tbody tr").first.locator(".named")).to_have_count(1)
    expect(page.locator("#groups tbody tr").first).to_contain_text(f"rank {RANK}")
    expect(page.locator("#matrix .legend .ring")).to_have_count(1)


def test_a_healthy_job_looks_healthy(viewer):
    page = viewer.open(page_of(builder.healthy()))
    ends = page.evaluate("clusterReport.scale('computing', 'deviation')")

    assert ends[0] <= -0.05
    assert ends[1] >= 0.05
    expect(page.locator("#groups tbody td:last-child").first).to_have_text("no single rank")


@BOTH_SIZES
def test_a_selection_is_drawn_while_dragging_and_the_matrix_zooms_by_it(kept, n_ranks):
    page = kept(n_ranks)
    page.locator("#matrix-level").select_option("ranks")
    drag(page, "#matrix canvas", (120, 60), (420, 360), release=False)
    expect(page.locator("#matrix .selection")).to_be_visible()
    expect(page.locator("#tip")).to_be_hidden()
    page.mouse.up()
    expect(page.locator("#matrix .selection")).to_have_count(0)
    assert any(part.startswith("matrix-across=") for part in chosen(page))
    page.locator("#matrix .unzoom").click()
    expect(page.locator("#matrix .unzoom")).to_have_count(0)


def test_no_tip_outlives_its_chart(kept):
    page = kept()
    show(page, "heat-section")
    page.locator("#heat canvas").hover(position={"x": 300, "y": 60})
    wait_for_tip(page, "rank ")
    page.mouse.wheel(0, 700)
    expect(page.locator("#tip")).to_be_hidden()


def drag(page, selector, start, end, release=True):
    canvas = page.locator(selector)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + start[0], box["y"] + start[1])
    page.mouse.down()
    page.mouse.move(box["x"] + end[0], box["y"] + end[1], steps=4)
    if release:
        page.mouse.up()
