"""Maps and pictures: devices, groups, packets, what hosts did."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.describe.places import host_times, packet_sizes
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports import html
from cluster_analysis.reports.page.pictures import device_map, memory_curves, packet_bars
from cluster_analysis.result import AnalysisResult
from cluster_analysis.tables import schema
from tests.analysis.describe.test_described import rows_of
from tests.analysis.runs import real


def analysed(name: str, folder: Path) -> AnalysisResult:
    with examined(AnalyseOptions(real(name), folder)) as run:
        return judged(run)


def test_packets_are_summed_by_transport_and_power_of_two() -> None:
    sizes = ((1024.0, 3, 2.0), (1500.0, 1, 1.0), (2048.0, 1, 4.0))
    rows = [
        {"rank": 0, "transport": "RDMA", "packet_bytes": size, "n_packets": n, "total_us": us}
        for size, n, us in sizes
    ]
    small, large = packet_sizes(rows_of(schema.PACKETS, *rows)).to_pylist()
    assert (small["from_bytes"], small["n_packets"], small["total_us"]) == (1024.0, 4, 3.0)
    assert (large["from_bytes"], large["bandwidth_gbps"]) == (2048.0, pytest.approx(0.512))


def test_idle_time_of_a_rank_stands_in_one_row_by_its_causes() -> None:
    rows = [
        {"rank": 2, "metric": "idle_us", "label": "dispatching", "value": 7.0},
        {"rank": 2, "metric": "dispatched_late_share", "label": "", "value": 0.2},
    ]
    (row,) = host_times(rows_of(schema.COUNTERS, *rows)).to_pylist()
    assert (row["rank"], row["dispatching_us"], row["dispatched_late_share"]) == (2, 7.0, 0.2)
    assert row["collecting_us"] is None


def test_memory_packets_clock_and_idle_time_of_a_database_are_drawn(tmp_path: Path) -> None:
    result = analysed("resnet-2of8-pt-db", tmp_path)
    curves = memory_curves(result)
    assert [rank for rank, _ in curves[0].lines] == [0, 1]
    assert curves[0].most.endswith("GiB")
    assert max(bar.share for bar in packet_bars(result)) == 1.0
    (cells,) = [cells for _, cells in device_map(result)]
    assert any("1800 MHz" in line for cell in cells for line in cell.lines)
    page = html.render(result).decode()
    assert page.count("<polyline") == sum(len(one.lines) for one in curves)
    assert "Free time and the host" in page


def test_flops_of_r1_are_a_map_and_its_costs_and_groups_are_on_the_page(tmp_path: Path) -> None:
    result = analysed("mindspore-r1-4ranks", tmp_path)
    (cells,) = [cells for _, cells in device_map(result)]
    assert [round(cell.shade, 5) for cell in cells] == [0.32507, 0.32506, 0.99999, 1.0]
    page = html.render(result).decode()
    assert "Communication and waiting by rank (r1.x)" in page
    assert "1,112" in page or "270.25" in page


def test_groups_of_qwen3_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    groups = analysed("qwen3-4ranks-pt", tmp_path).tables["groups"].to_pylist()
    assert ("pp", [1, 3]) in [(one["role"], one["ranks"]) for one in groups]
