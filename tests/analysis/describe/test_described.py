"""Tables for people: kernels between ranks, communication by group, memory, FLOPs, advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.describe.kernels import between_ranks
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports import html
from cluster_analysis.tables import described, schema
from cluster_analysis.tables.model import Topology
from cluster_run.ids import ParallelSizes, Rank
from tests.analysis.runs import real, write_small_run

NOWHERE = Topology((), {}, {}, {}, ParallelSizes(), {})
EMPTY: Mapping[str, pa.Table] = {name: one.empty_table() for name, one in schema.FIGURES.items()} | {
    "packets": schema.PACKETS.empty_table(),
    "memory_peaks": described.MEMORY_PEAKS.empty_table(),
}


def rows_of(wanted: pa.Schema, *rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(wanted.names) | row for row in rows], schema=wanted)


def kernel(rank: int, name: str, us: float, **more: object) -> dict[str, object]:
    return {"rank": rank, "op_type": name, "name": name, "total_us": us, "n_calls": 2, **more}


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


def test_the_flops_of_r1_are_shares_of_the_largest_as_its_own_page_has_them(tmp_path: Path) -> None:
    with examined(AnalyseOptions(real("mindspore-r1-4ranks"), tmp_path)) as run:
        result = judged(run)
    shares = result.tables["flops"]["share_of_largest"].to_pylist()
    assert shares == pytest.approx([0.32507, 0.32506, 0.99999, 1.0], abs=1e-5)
    assert "Step trace of r1.x" in html.render(result).decode()


def test_one_rank_alone_has_its_kernels_memory_and_communication_on_the_page(tmp_path: Path) -> None:
    run_of_one = tmp_path / "run"
    run_of_one.mkdir()
    (run_of_one / "rank0_ascend_pt").symlink_to(real("resnet-2of8-pt-text") / "rank0_ascend_pt")
    with examined(AnalyseOptions(run_of_one, tmp_path / "out")) as run:
        page = html.render(judged(run)).decode()
    for word in ("ForeachAddList", "Kernels between ranks", "Communication by group", "APP"):
        assert word in page


def test_a_simulated_job_has_every_described_table(tmp_path: Path) -> None:
    with examined(AnalyseOptions(write_small_run(tmp_path / "run"), tmp_path / "out")) as run:
        tables = judged(run).tables
    assert tables["stages"]["n_ranks"].to_pylist() == [4, 4]
    matched = tables["matched"]
    assert sum(tables["communication"]["n_operators"].to_pylist()) == matched.num_rows
    assert sum(tables["communication"]["wait_us"].to_pylist()) == pytest.approx(
        sum(matched["total_wait_us"].to_pylist())
    )
