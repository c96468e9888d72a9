"""Tables for people: kernels between ranks, communication by group, memory, FLOPs, advice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.describe.places import host_times, packet_sizes
from cluster_analysis.describe.relative_to_peers import relative_to_peers, same_kernels
from cluster_analysis.describe.spreads import QUARTILES, between_ranks, quartiles
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports.page.drawn import device_map, memory_curves, packet_bars
from cluster_analysis.result import AnalysisResult
from cluster_analysis.tables import schema
from cluster_analysis.tables.columns_described import MemoryPeaks
from cluster_analysis.tables.columns_measured import Links, Operators, Steps
from cluster_analysis.tables.model import Topology
from cluster_run.ids import HostId, ParallelSizes, Rank
from tests.analysis.reports.pages import page_of
from tests.analysis.runs import real, write_small_run

NOWHERE = Topology((), {}, {}, {}, ParallelSizes(), {})
EMPTY: Mapping[str, pa.Table] = {name: one.empty_table() for name, one in schema.FIGURES.items()} | {
    "packets": schema.PACKETS.empty_table(),
    "memory_peaks": MemoryPeaks.schema.empty_table(),
}


def rows_of(wanted: pa.Schema, *rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(wanted.names) | row for row in rows], schema=wanted)


def kernel(rank: int, name: str, us: float, **more: object) -> dict[str, object]:
    return {"rank": rank, "op_type": name, "name": name, "total_us": us, "n_calls": 2, **more}


@pytest.mark.parametrize(
    ("hosts", "slow", "quick"),
    [
        pytest.param((0, 0, 0, 0, 1, 1, 1, 1), 1.06, 1.0, id="one of two hosts"),
        pytest.param((0, 0, 0, 0, 1, 1, 2, 2), 1.06, 1.0, id="half of a stage"),
        pytest.param((0, 0, 0, 0, 0, 0, 0, 0), math.sqrt(1.06), 1 / math.sqrt(1.06), id="half of one host"),
    ],
)
def test_a_slow_host_counts_in_full_for_the_fleet_and_the_others_of_its_stage_as_healthy(
    hosts: tuple[int, ...], slow: float, quick: float
) -> None:
    spent_us = [10.6] * 4 + [10.0] * 4
    table = rows_of(schema.KERNELS, *(kernel(rank, "MatMul", us) for rank, us in enumerate(spent_us)))
    found = same_kernels(table, dict.fromkeys(range(8), 0), dict(enumerate(hosts)))
    assert found is not None
    assert np.exp(found.values) == pytest.approx([slow] * 4 + [quick] * 4)


def test_a_clock_explains_a_slow_host_of_two_as_far_as_it_is_lower() -> None:
    empty = {"operators": Operators, "steps": Steps, "links": Links}
    tables = {**EMPTY, **{name: one.schema.empty_table() for name, one in empty.items()}}
    metric = {"metric": "aicore_frequency_mhz"}
    rows = [{"rank": rank, "value": 1700.0 if rank < 4 else 1800.0} | metric for rank in range(8)]
    hosts = {Rank(rank): HostId(str(rank // 4 + 1)) for rank in range(8)}
    where = Topology(tuple(hosts), hosts, {}, {}, ParallelSizes(), {})
    found = relative_to_peers({**tables, "counters": rows_of(schema.COUNTERS, *rows)}, where)
    assert found["metric"].unique().to_pylist() == ["clock"]
    assert np.exp(found["value"].to_numpy()) == pytest.approx([1800 / 1700] * 4 + [1.0] * 4)


def test_a_kernel_is_held_against_the_ranks_of_its_stage_only() -> None:
    where = Topology(
        tuple(map(Rank, range(4))),
        {},
        {},
        {},
        ParallelSizes(),
        {Rank(0): 0, Rank(1): 0, Rank(2): 1, Rank(3): 1},
    )
    table = rows_of(
        schema.KERNELS,
        *(kernel(rank, "MatMul", us) for rank, us in enumerate((10.0, 14.0, 30.0, 30.0))),
        kernel(1, "Cast", 1.0),
    )
    first, second, third = between_ranks(table, where).to_pylist()
    assert (first["stage"], first["slowest_excess_us"]) == (1, 0.0)
    assert (second["stage"], second["slowest_rank"], second["median_us"]) == (0, 1, 12.0)
    # A rank without the kernel counts with 0.
    assert (third["op_type"], third["min_us"], third["max_us"]) == ("Cast", 0.0, 1.0)


def test_one_rank_alone_has_its_kernels_memory_and_communication_on_the_page(tmp_path: Path) -> None:
    run_of_one = tmp_path / "run"
    run_of_one.mkdir()
    (run_of_one / "rank0_ascend_pt").symlink_to(real("resnet-2of8-pt-text") / "rank0_ascend_pt")
    with examined(AnalyseOptions(run_of_one, tmp_path / "out")) as run:
        page = page_of(judged(run)).decode()
    for word in ("ForeachAddList", "Kernels between ranks", "Communication by group", "APP"):
        assert word in page


def test_a_simulated_job_has_every_described_table(tmp_path: Path) -> None:
    with examined(AnalyseOptions(write_small_run(tmp_path / "run"), tmp_path / "out")) as run:
        tables = judged(run).tables
    assert tables["stages"]["n_ranks"].to_pylist() == [4, 4]
    for name in ("communication", "groups", "stages"):
        empty = [one for one in tables[name].column_names if not tables[name][one].drop_null()]
        assert (name, empty) == (name, [])
    matched = tables["matched"]
    assert sum(tables["communication"]["n_operators"].to_pylist()) == matched.num_rows
    assert sum(tables["communication"]["wait_us"].to_pylist()) == pytest.approx(
        sum(matched["total_wait_us"].to_pylist())
    )


# Maps and pictures: devices, groups, packets, what hosts did.
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
    page = page_of(result).decode()
    assert page.count("<polyline") == sum(len(one.lines) for one in curves)
    assert "Free time and the host" in page


@pytest.mark.slow
def test_flops_of_r1_are_a_map_and_its_costs_and_groups_are_on_the_page(tmp_path: Path) -> None:
    result = analysed("mindspore-r1-4ranks", tmp_path)
    shares = [0.32507, 0.32506, 0.99999, 1.0]
    assert result.tables["flops"]["share_of_largest"].to_pylist() == pytest.approx(shares, abs=1e-5)
    (cells,) = [cells for _, cells in device_map(result)]
    assert [round(cell.shade, 5) for cell in cells] == shares
    page = page_of(result).decode()
    for section in ("Step trace of r1.x", "Communication and waiting by rank (r1.x)"):
        assert section in page
    assert "1,112" in page or "270.25" in page


def test_groups_of_qwen3_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    groups = analysed("qwen3-4ranks-pt", tmp_path).tables["groups"].to_pylist()
    assert ("pp", [1, 3]) in [(one["role"], one["ranks"]) for one in groups]


# Five numbers of a group of values.
@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=50), st.integers(0, 3))
def test_quartiles_are_numpys_to_the_last_digit(values: list[float], n_missing: int) -> None:
    found = quartiles(np.array([*values, *[math.nan] * n_missing]))
    assert list(found.values()) == np.quantile(values, list(QUARTILES.values())).tolist()


def test_quartiles_of_nothing_are_not_known() -> None:
    assert set(quartiles(np.array([math.nan])).values()) == {None}
