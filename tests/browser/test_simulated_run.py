"""The whole way: a simulated job, analysed by the command, its report opened in a browser.

32 ranks as the demo has them, and 120 ranks with few operators, which still name the slow rank: beyond 64
ranks and 12 hosts all pages are built alike.
"""

import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cluster_analysis.cli import main as analyse
from cluster_simulate.cli import main as simulate
from tests.browser.acting import (
    choose_everything,
    expect,
    open_every_finding,
    show_every_row,
    wait_for_tip,
    wait_until_painted,
)
from tests.browser.conftest import Viewer
from tools.renew_picture import take_pictures

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SMALL = ("--tp", "4", "--pp", "2", "--dp", "4", "--steps", "5")
LARGE = ("--tp", "8", "--pp", "3", "--dp", "5", "--steps", "3", "--microbatches", "2", "--segments", "1")
FAULTS = ("--scenario", "slow_rank:1.25@13", "--scenario", "slow_link:3")
PICTURES = Path(__file__).parents[2] / "docs" / "images"
#: Float columns of the page have four bytes.
CLOSE = 1e-6


@pytest.fixture(scope="module")
def output_of(tmp_path_factory):
    @cache
    def analysed(sizes):
        """The output of a simulated job, made once."""
        run = tmp_path_factory.mktemp("simulated") / "run1"
        assert simulate([str(run), *sizes, *FAULTS, "-q"]) == 0
        assert analyse([str(run), "-q"]) == 0
        return run / "cluster_analysis_output"

    return analysed


@pytest.fixture(scope="module", params=[SMALL, LARGE], ids=["32-ranks", "120-ranks"])
def output(request, output_of):
    return output_of(request.param)


@pytest.fixture(scope="module")
def seen(tabs, output, tmp_path_factory):
    """The page of a job, opened once for all that only read it."""
    viewer = Viewer(tabs, tmp_path_factory.mktemp("seen"))
    yield viewer.open((output / "report.html").read_bytes())
    viewer.close()


@pytest.fixture(scope="module")
def small_output(output_of):
    return output_of(SMALL)


def table(output, name):
    return pq.read_table(output / "tables" / f"{name}.parquet").to_pylist()


def test_page_of_a_simulated_job_shows_what_findings_json_and_the_steps_say(seen, output):
    page = seen
    findings = json.loads((output / "findings.json").read_text())

    assert page.evaluate("clusterReport.run.document") == findings
    shown = page.locator("details.finding")
    expect(shown).to_have_count(len(findings["findings"]))
    for index, finding in enumerate(findings["findings"]):
        expect(shown.nth(index)).to_contain_text(finding["summary"])
    lost = page.locator("[data-lost]").evaluate_all(
        "all => all.map((one) => [one.dataset.lost, +one.dataset.ms])"
    )
    assert lost == [[one["part"], one["ms"]] for one in findings["run"]["lost"] if one["share"] >= 0.005]
    rows = table(output, "steps")
    for name, column in (("computing", "computing_us"), ("free", "free_us"), ("bubble", "bubble_us")):
        values = page.evaluate(
            """([name, asked]) => { const run = clusterReport.run;
                const bin = (step) => run.bins.findIndex((one) => one[0] === step);
                return asked.map(([rank, step]) => run.value(name, rank, bin(step))); }""",
            [name, [[row["rank"], row["step"]] for row in rows]],
        )
        assert values == pytest.approx([row[column] for row in rows], rel=CLOSE)


def test_lanes_show_what_ranks_do_and_the_critical_path_through_the_slow_one(seen, output):
    page = seen
    wait_until_painted(page, "#lanes canvas")
    path = table(output, "critical_path")
    assert page.evaluate("clusterReport.run.lanes.path.length") == len(path)
    cells = [list(row["cells"]) for row in table(output, "lanes")]
    assert page.evaluate("Array.from(clusterReport.run.columns['lanes.cells'].slice(0, 64))") == cells[0][:64]
    expect(page.locator("#lanes .legend")).to_contain_text("critical path on a rank that a finding names")
    canvas = page.locator("#lanes canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    wait_for_tip(page, "rank 0 = host 1 / device 0")
    canvas.press("Escape")


def test_the_matrix_of_waiting_holds_what_the_table_says(seen, output):
    page = seen
    wait_until_painted(page, "#who-waits canvas", n_colours=3)
    rows, n_ranks = table(output, "waits"), len(table(output, "ranks"))
    of_page = page.evaluate(
        "[clusterReport.run.whoWaits.rows.length, Array.from(clusterReport.run.columns['who_waits.us'])]"
    )
    n_ends, each_us = of_page
    # The cells are means over the ranks of an end; all ends are equally large.
    assert sum(each_us) * n_ranks / n_ends == pytest.approx(sum(row["wait_us"] for row in rows), rel=1e-4)
    assert n_ends == (n_ranks if n_ranks <= 64 else n_ranks // 8)


def test_bubbles_have_a_row_a_stage_and_answer_to_the_keyboard(seen, output):
    page = seen
    wait_until_painted(page, "#bubbles canvas", n_colours=3)
    stages = {row["stage"] for row in table(output, "ranks")}
    assert page.evaluate("clusterReport.run.bubbles.stages") == sorted(stages)
    canvas = page.locator("#bubbles canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    wait_for_tip(page, "stage 0\nmessage 1")
    canvas.press("Escape")


def test_lanes_zoom_in_both_ways_and_back(seen):
    page = seen
    wait_until_painted(page, "#lanes canvas")
    page.locator("#lanes").scroll_into_view_if_needed()
    box = page.locator("#lanes canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 160, steps=4)
    page.mouse.up()
    expect(page.locator("#lanes .reset")).to_be_visible()
    assert re.search(r"lanes-time=\d+-\d+.*lanes-ranks=\d+-\d+", page.evaluate("location.hash"))
    page.locator("#lanes .reset").click()
    expect(page.locator("#lanes .reset")).to_have_count(0)
    assert "lanes" not in page.evaluate("location.hash")


def test_times_below_the_mean_step_are_those_of_the_slow_rank(seen, output):
    page = seen
    rows = [row for row in table(output, "steps") if row["rank"] == 13]
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    free, computing = (page.locator(f"dd[data-part={part}] + dd.beside") for part in ("free", "compute_only"))

    expect(free).to_have_text(re.compile("^rank 13: "))
    assert float(free.get_attribute("data-us")) == pytest.approx(mean["free_us"])
    expect(computing).to_have_class(re.compile("is-far"))
    only_us = mean["computing_us"] - mean["overlapped_us"]
    assert float(computing.get_attribute("data-us")) == pytest.approx(only_us)


def test_chains_of_a_simulated_job_are_told_in_chinese(viewer, small_output):
    page = viewer.open((small_output / "report.html").read_bytes(), locale="zh-CN")
    open_every_finding(page)

    expect(page.locator("ol.chain li").first).to_contain_text("等待")
    for sentence in page.locator("ol.chain li").all_inner_texts():
        assert not re.search("[A-Za-z]{3}", sentence), sentence


def test_every_link_of_the_page_has_the_bandwidth_time_and_size_of_the_table(seen, output):
    page = seen
    names = ("src", "dst", "transport", "op", "size", "time", "gbps", "class_gbps", "excess")
    columns = page.evaluate(
        """names => { const run = clusterReport.run;
            const words = {transport: run.transports, op: run.opTypes};
            return names.map((name) => Array.from(run.columns["link." + name],
              (value) => (words[name] ? words[name][value] : Number.isNaN(value) ? null : value))); }""",
        names,
    )
    shown = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    by_link = {(one["src"], one["dst"], one["transport"], one["op"]): one for one in shown}
    rows = table(output, "links")

    assert len(shown) == len(by_link) == len(rows) == page.evaluate("clusterReport.run.linksTotal")
    for row in rows:
        one = by_link[row["src_rank"], row["dst_rank"], row["transport"], row["op_type"]]
        for name, column in (
            ("size", "size_bytes"),
            ("time", "time_us"),
            ("gbps", "bandwidth_gbps"),
            ("class_gbps", "class_bandwidth_gbps"),
            ("excess", "excess_share"),
        ):
            assert one[name] == pytest.approx(row[column], rel=CLOSE), (row, name)


def test_pairs_of_hosts_add_up_to_the_links_of_the_table(seen, output):
    page = seen
    host_of = {row["rank"]: row["host"] for row in table(output, "ranks")}
    wanted = defaultdict(lambda: [0.0, 0.0])
    for row in table(output, "links"):
        pair = wanted[host_of[row["src_rank"]], host_of[row["dst_rank"]]]
        pair[0] += row["size_bytes"]
        pair[1] += row["time_us"]
    shown = defaultdict(lambda: [0.0, 0.0])
    for src, dst, size, time in page.evaluate(
        """() => { const run = clusterReport.run, of = (name) => run.columns["pair." + name];
            return Array.from(of("src"), (_, i) =>
              [run.hosts[of("src")[i]], run.hosts[of("dst")[i]], of("size")[i], of("time")[i]]); }"""
    ):
        shown[src, dst][0] += size
        shown[src, dst][1] += time

    assert set(shown) == set(wanted)
    for pair, sums in wanted.items():
        assert shown[pair] == pytest.approx(sums, rel=1e-5), pair


def test_groups_of_the_page_are_sums_over_the_table_of_matched_operators(seen, output):
    page = seen
    rows = table(output, "matched")
    n_steps = len({row["step"] for row in rows})
    by_group = defaultdict(list)
    for row in rows:
        by_group[row["group"]].append(row)
    shown = {one["group"]: one for one in page.evaluate("clusterReport.run.groups")}

    assert set(shown) == set(by_group)
    for group, calls in by_group.items():
        # A message has a row for each of its calls, a collective one for all members.
        n_ranks = max(len({one["rank"] for one in calls}), *(one["n_ranks"] for one in calls))
        wait_us = sum(one["total_wait_us"] or 0.0 for one in calls) / n_ranks / n_steps
        transfer_us = sum(one["transfer_us"] * one["n_ranks"] for one in calls) / n_ranks / n_steps
        assert shown[group]["wait_us"] == pytest.approx(wait_us)
        assert shown[group]["transfer_us"] == pytest.approx(transfer_us)
        assert shown[group]["n_ops"] == pytest.approx(len(calls) / n_steps)


def test_operators_of_the_page_are_rows_of_the_table_and_the_slowest_of_them(seen, output):
    page = seen
    shown = page.evaluate("clusterReport.run.operators")
    names = sorted(shown[0])
    rows = table(output, "matched")

    every_row = Counter(tuple(row[name] for name in names) for row in rows)
    assert not Counter(tuple(one[name] for name in names) for one in shown) - every_row
    for column in ("max_wait_us", "transfer_us"):
        largest = sorted((row[column] or 0.0 for row in rows), reverse=True)[:50]
        assert sorted((one[column] or 0.0 for one in shown), reverse=True)[:50] == largest


def test_page_of_a_simulated_job_names_the_slow_rank_first_and_draws_everything(seen, request):
    page = seen
    name = request.node.callspec.id

    expect(page.locator("h1")).to_contain_text("slow rank 13")
    assert open_every_finding(page) >= 2
    for chart in ("bars", "heat", "map", "matrix"):
        wait_until_painted(page, f"#{chart} canvas")
    waits = "TP · ranks 8-15" if name.startswith("120") else "TP · ranks 12-15"
    expect(page.locator(".waiting tr").first).to_contain_text(waits)
    expect(page.locator(".waiting tr").first).to_contain_text("waits for rank 13")


def test_every_filter_and_order_can_be_chosen_after_a_change_of_language_and_theme(viewer, small_output):
    page = viewer.open((small_output / "report.html").read_bytes())
    open_every_finding(page)

    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator("#language").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert choose_everything(page) > page.locator("select").count()
    show_every_row(page)
    for button in page.locator("th button").all()[:12]:
        button.click()
        expect(button.locator("xpath=..")).to_have_attribute("aria-sort", re.compile("ending$"))
    for chart in ("bars", "heat", "map", "matrix"):
        wait_until_painted(page, f"#{chart} canvas", n_colours=3)


def test_a_comparison_of_a_simulated_job_with_itself_shows_that_nothing_moved(viewer, small_output, tmp_path):
    run = str(small_output.parent)
    assert analyse([run, "--baseline", run, "--output", str(tmp_path), "-q"]) == 0
    page = viewer.open((tmp_path / "report.html").read_bytes())

    expect(page.locator("#changes tbody tr")).to_have_count(1)
    expect(page.locator("#changes")).to_contain_text("within noise")


def test_every_picture_of_the_documents_is_made_by_the_script_and_small(browser, small_output, tmp_path):
    take_pictures(browser, small_output / "report.html", tmp_path)

    assert {one.name for one in tmp_path.iterdir()} == {one.name for one in PICTURES.iterdir()}
    for picture in tmp_path.iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 300_000
