"""Kernels, memory and clocks of real captures, against other files of the same captures."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.db.task_links_db import read_task_peers
from cluster_analysis.sources.errors import Remark
from cluster_analysis.topology.build import map_links
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.hints import Stated
from cluster_reduce.reduction import reducer_of
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA, needs_captures, read, topology_of
from tests.analysis.sources.twins import as_columns, assert_same
from tests.analysis.trace.paired import paired_ends

pytestmark = needs_captures


@pytest.mark.parametrize("name", ["qwen3-4ranks-pt", "resnet-2of8-pt-text", "resnet-2of8-pt-db"])
def test_kernels_by_shape_add_up_to_the_statistic_by_type(name: str) -> None:
    _, tables = read(name)
    one = tables[Rank(0)]
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in one.figures["kernels"].to_pylist():
        sums[row["op_type"], row["core_type"]][0] += row["n_calls"]
        sums[row["op_type"], row["core_type"]][1] += row["total_us"]
    stated = {
        (row["op_type"], row["core_type"]): [row["n_calls"], row["total_us"]]
        for row in one.operators.to_pylist()
    }
    assert sums.keys() == stated.keys()
    for key, (n_calls, total_us) in stated.items():
        assert sums[key][0] == n_calls
        assert sums[key][1] == pytest.approx(total_us, abs=0.02), key


def test_kernels_of_one_job_have_the_same_shapes_in_text_and_database() -> None:
    left, right = (read(f"resnet-2of8-pt-{form}")[1][Rank(0)].figures["kernels"] for form in ("text", "db"))
    keys = ["op_type", "core_type", "name", "input_shapes", "output_shapes", "n_calls", "flops_count"]
    assert sorted(map(str, left.select(keys).to_pylist())) == sorted(map(str, right.select(keys).to_pylist()))


def test_matrix_products_of_qwen3_run_at_a_speed_that_the_device_has() -> None:
    kernels = read("qwen3-4ranks-pt")[1][Rank(0)].figures["kernels"]
    products = kernels.filter(pc.is_valid(kernels["flops_count"]))
    per_s = pc.sum(products["flops_count"]).as_py() / (pc.sum(products["total_us"]).as_py() / 1e6)
    assert 100e12 < per_s < 400e12


@pytest.mark.parametrize("name", ["qwen3-4ranks-pt", "resnet-2of8-pt-text"])
def test_the_peaks_of_memory_over_time_are_the_peaks_of_the_records(name: str) -> None:
    figures = read(name)[1][Rank(0)].figures
    peaks = {
        row["label"]: row["value"]
        for row in figures["counters"].to_pylist()
        if row["metric"] == "memory_peak_reserved_bytes"
    }
    for component, peak in peaks.items():
        rows = [row for row in figures["memory"].to_pylist() if row["component"] == component]
        assert max(row["reserved_bytes"] or 0.0 for row in rows) == pytest.approx(peak)
        assert len(rows) <= 121


def test_the_clock_of_resnet_is_1800_mhz_throughout() -> None:
    figures = read("resnet-2of8-pt-db")[1][Rank(0)].figures
    assert figures["frequency"]["frequency_mhz"].to_pylist() == [1800.0]
    assert "aclrtMemcpyAsync" in figures["apis"]["api"].to_pylist()


# Real captures, reduced as their hosts would reduce them, give the same tables and problems.
#: How many files of each have columns.
CAPTURES = {
    "gpt3-16ranks-pt": 5,
    "qwen3-4ranks-pt": 14,
    "resnet-2of8-pt-text": 8,
    "resnet-2of8-pt-db": 4,
    "bytedance-ST/mixed": 16,
}


def reducible(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if reducer_of(os.fsencode(path)) and path.is_file()]


def test_no_file_of_r1_has_columns() -> None:
    assert reducible(DATA / "mindspore-r1-4ranks") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_columns_of_a_real_capture_give_the_same(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(DATA / name, run)
    raw = discover(run)
    before = {source.rank: read_rank(source) for source in raw.sources}
    n_columns = sum(map(as_columns, reducible(run)))
    assert n_columns == CAPTURES[name]
    reduced = discover(run)
    assert (reduced.problems, reduced.notes) == (raw.problems, raw.notes)
    for source in reduced.sources:
        assert_same(before[source.rank], read_rank(source))


# Every folder of real captures is read, and every output of another tool there is compared with.
FOLDERS = {
    "qwen3-4ranks-pt": ("ascend_pt/text", [0, 1, 2, 3]),
    "gpt3-16ranks-pt": ("ascend_pt/text", [0, 1]),
    "resnet-2of8-pt-text": ("ascend_pt/text", [0, 1]),
    "resnet-2of8-pt-db": ("ascend_pt/db", [0, 1]),
    "mindspore-r1-4ranks": ("mindspore_r1/text", [0, 1, 2, 3]),
    "bytedance-ST/batch": ("ascend_pt/text", [0, 1, 2, 3, 4, 5, 6, 7]),
    "bytedance-ST/mixed": ("ascend_pt/text", [0, 1, 2, 3, 4, 5, 6, 7]),
}
#: The test module that compares with each folder of outputs that other tools made.
REFERENCES = {
    "peer-output/qwen3-4ranks-pt": "test_qwen3.py",
    "gpt3-16ranks-pt/reference_cluster_analysis_output": "test_gpt3.py",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_is_read_whole_and_without_a_problem(name: str) -> None:
    kind, ranks = FOLDERS[name]
    capture, tables = read(name)
    assert capture.problems == ()
    assert sorted(tables) == ranks
    assert {source.kind for source in capture.sources} == {kind}
    for one in tables.values():
        assert one.steps.num_rows > 0
        assert one.collectives.num_rows > 0
        assert one.links.num_rows > 0


def test_no_folder_is_left_out() -> None:
    there = {path.name for path in DATA.iterdir() if path.is_dir()}
    assert there == {name.partition("/")[0] for name in FOLDERS} | {"peer-output"}


def test_every_output_of_another_tool_is_compared_with() -> None:
    outputs = {
        path.relative_to(DATA)
        for path in DATA.rglob("*")
        if path.is_file() and path.name.startswith(("cluster_", "communication_group"))
    }
    assert {str(path.parent) for path in outputs} == set(REFERENCES)
    for path in outputs:
        module = Path(__file__).parent / REFERENCES[str(path.parent)]
        assert path.name in module.read_text(), f"{module.name} does not compare with {path}"


# Whom real files say that messages are for, held against whom their times pair.
IN_DATABASE_FORM = ("resnet-2of8-pt-db",)


def unheard(why: Fact, *also: Fact) -> None:
    return None


def test_the_times_of_qwen3_pair_the_ranks_that_its_matrix_names() -> None:
    capture, tables = read("qwen3-4ranks-pt")
    where, _ = topology_of(capture, tables)
    links, collectives = (
        pa.concat_tables([getattr(one, name) for one in tables.values()])
        .unify_dictionaries()
        .combine_chunks()
        for name in ("links", "collectives")
    )
    calls = calls_of(collectives)
    stated, peer = Stated(collectives["op_name"], map_links(links, where)[0]).peers(calls, np.arange(4))
    ends = paired_ends(calls, clock_offsets(calls, match_calls(calls)[0]), where)
    assert len(set(stated.tolist())) == 8, "the fastest, slowest and middle messages of each rank"
    assert (calls.rank[ends.sender[stated]] == peer).all()
    assert (calls.rank[ends.receiver[stated]] == peer).all()


def test_tasks_of_messages_name_their_peers_in_every_database() -> None:
    remark: Remark = unheard
    sources = [source for name in IN_DATABASE_FORM for source in discover(DATA / name).sources]
    found = [read_task_peers(Path(one.files["profiler_db"]), one.rank, remark) for one in sources]
    if not any(one is not None for one in found):
        pytest.skip("no real capture in database form sends a message")
    for source, table in zip(sources, found, strict=True):
        assert table is None or set(table["rank"].to_pylist()) == {source.rank}
