"""A page shows what its data can show, and says why the rest is not there."""

import pyarrow as pa
import pytest

from tests.analysis.copies import replace
from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser.acting import expect, wait_for_tip, wait_until_painted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def one_rank(n_steps: int = 5):
    """A job of one rank, of which nothing was matched."""
    result = builder.healthy(builder.Job(1, 1, 1, n_steps))
    tables = {
        name: table.slice(0, 0) if name in ("links", "matched") else table
        for name, table in result.tables.items()
    }
    document = replace(result.document, verdict="unknown")
    return replace(result, document=document, tables=tables)


def test_the_page_of_one_rank_draws_its_steps_and_no_chart_that_compares_ranks(viewer):
    page = viewer.open(page_of(one_rank()))

    wait_until_painted(page, "#trend canvas")
    assert page.locator(".chart").evaluate_all("all => all.map((one) => one.id)") == ["trend", "memory"]
    expect(page.locator("#absent")).to_contain_text("One rank was read")
    expect(page.locator("#absent li", has_text="One rank was read")).to_contain_text("Rank by rank")
    expect(page.locator("main")).not_to_contain_text("median of peers")
    assert page.locator(".bar nav a").evaluate_all(
        "all => all.every((one) => document.querySelector(one.hash))"
    )


def test_the_panel_of_a_rank_alone_holds_it_against_nobody(viewer):
    page = viewer.open(page_of(one_rank()))
    page.keyboard.press("/")
    page.keyboard.type("rank 0")
    page.keyboard.press("Enter")

    expect(page.locator("#panel h2")).to_contain_text("rank 0")
    expect(page.locator("#panel")).to_contain_text("Computing")
    expect(page.locator("#panel")).not_to_contain_text("median of peers")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_be_focused()


def test_a_page_of_many_ranks_leaves_nothing_out(kept):
    page = kept()

    # Tables by hand hold no replay, and messages without a rank.
    titles = page.locator("#absent b").all_inner_texts()
    assert titles == ["One step as lanes", "Who waits for whom", "Bubbles, message by message"]


def test_steps_stand_beside_each_other_and_one_is_found_by_its_number(kept):
    page = kept()
    page.locator("#trend canvas").focus()
    page.keyboard.press("ArrowRight")
    wait_for_tip(page, "step 10\n")

    page.keyboard.press("/")
    page.keyboard.type("step 13")
    expect(page.locator("#found li").first).to_contain_text("step 13")
    page.keyboard.press("Enter")
    expect(page.locator("#bars-step")).to_have_value("13")


def test_a_picture_is_a_table_as_well(kept):
    page = kept()
    page.locator("#trend-section .as-table summary").click()

    rows = page.locator("#trend-section .as-table tbody tr")
    expect(rows).to_have_count(6)
    expect(rows.first).to_contain_text("10")
    expect(rows.first).to_contain_text("283 ms")


def test_a_healthy_page_paints_no_rank_in_the_colour_of_a_fault(viewer):
    page = viewer.open(page_of(builder.healthy()))
    for rank in (0, 17):
        page.evaluate(
            f"history.replaceState(null, '', '#show=rank:{rank}'); dispatchEvent(new Event('popstate'))"
        )
        expect(page.locator("#panel")).to_be_visible()
        expect(page.locator(".is-far")).to_have_count(0)


def test_memory_stands_first_where_a_rank_is_nearly_full(viewer):
    result = builder.degraded()
    peaks = result.tables["memory_peaks"]
    held = [0.95 * row["capacity_bytes"] for row in peaks.to_pylist()]
    full = peaks.set_column(peaks.schema.get_field_index("reserved_bytes"), "reserved_bytes", pa.array(held))
    for one, first in (
        (result, "trend"),
        (builder.with_tables(result, {**result.tables, "memory_peaks": full}), "memory"),
    ):
        page = viewer.open(page_of(one))
        wait_until_painted(page, "#memory canvas", n_colours=3)
        assert page.locator(".chart").first.get_attribute("id") == first
    expect(page.locator("#memory .legend")).to_contain_text("above 92 % of the capacity")
    page.locator("#memory canvas").click(position={"x": 90, "y": 150})
    expect(page.locator("#panel h2")).to_contain_text("rank 0")
    page.keyboard.press("Escape")
    expect(page.locator("#memory canvas")).to_be_focused()
