"""MindSpore r1.x on 4 ranks: what its own tool says of the same files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA, US_PER_MS, needs_captures, read, topology_of
from tests.analysis.said import notes_of

pytestmark = needs_captures

#: Interval, forward-backward and tail in ms, as the r1.x tool's own tests assert them for ranks 0 to 3.
R1_MEANS = {
    0: (1.57225, 177.78514, 0.94376),
    1: (1.55882, 177.80334, 0.94067),
    2: (2.43180, 170.08852, 7.75106),
    3: (2.39538, 170.11209, 7.75985),
}
#: Links in GB/s, size over time, of the mean over all steps.
R1_BANDWIDTHS = [
    (0, "1-0", 20.934), (0, "0-0", 8.142), (1, "0-1", 5.055), (1, "1-1", 22.076),
    (2, "1-0", 17.368), (2, "0-0", 31.387), (3, "0-1", 19.376), (3, "1-1", 79.133),
]  # fmt: skip


@pytest.mark.slow
def test_the_stated_means_of_mindspore_r1_are_those_of_its_own_tool() -> None:
    _, tables = read("mindspore-r1-4ranks")
    for rank, expected in R1_MEANS.items():
        stated = tables[rank].iterations.filter(pc.is_null(tables[rank].iterations["step"])).to_pylist()
        found = tuple(
            stated[0][name] / US_PER_MS for name in ("interval_us", "forward_backward_us", "tail_us")
        )
        assert found == pytest.approx(expected, abs=5e-6)


def test_means_of_mindspore_r1_that_cover_steps_cut_from_the_file_are_noted() -> None:
    _, tables = read("mindspore-r1-4ranks")
    for rank, expected in R1_MEANS.items():
        note = next(note for note in notes_of(tables[rank]) if "average row" in note)
        assert " / ".join(f"{value:.5f}" for value in expected) in note


def test_rank_2_of_mindspore_r1_waits_22_percent_longer_between_steps_than_the_mean() -> None:
    _, tables = read("mindspore-r1-4ranks")
    intervals = [
        tables[rank].iterations.filter(pc.is_null(tables[rank].iterations["step"]))["interval_us"][0].as_py()
        for rank in range(4)
    ]
    assert intervals[2] / (sum(intervals) / 4) - 1 == pytest.approx(0.2223, abs=5e-5)


@pytest.mark.parametrize(("rank", "ends", "gbps"), R1_BANDWIDTHS)
def test_bandwidths_of_mindspore_r1_are_size_over_time(rank: int, ends: str, gbps: float) -> None:
    _, tables = read("mindspore-r1-4ranks")
    source, destination = map(int, ends.split("-"))
    links = [
        row
        for row in tables[rank].links.to_pylist()
        if (row["src_local"], row["dst_local"]) == (source, destination)
    ]
    found = sum(row["size_bytes"] for row in links) / sum(row["time_us"] for row in links) / 1000
    assert found == pytest.approx(gbps, abs=5e-4)


def test_stages_of_mindspore_r1_are_in_its_file_names() -> None:
    topology, _ = topology_of(*read("mindspore-r1-4ranks"))
    assert topology.stages == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topology.groups["op:AllReduce-op4542"].ranks == (0, 1)
    assert topology.groups["op:AllReduce-op17643"].ranks == (2, 3)


def test_computing_of_mindspore_r1_is_that_of_its_cluster_analysis() -> None:
    _, tables = read("mindspore-r1-4ranks")
    assert tables[0].steps["computing_us"].to_pylist() == pytest.approx(
        [13820.2, 14580.6, 14811.9, 15015.9, 14697.4]
    )
    assert tables[2].steps["computing_us"].to_pylist()[0] == pytest.approx(122752.9)


def test_flops_of_mindspore_r1_lie_51_percent_over_the_mean_in_stage_2() -> None:
    _, tables = read("mindspore-r1-4ranks")
    flops = [
        next(
            row["value"]
            for row in tables[rank].figures["counters"].to_pylist()
            if row["metric"] == "flops_count"
        )
        for rank in range(4)
    ]
    assert sum(flops[2:]) / 2 / (sum(flops) / 4) - 1 == pytest.approx(0.5094, abs=5e-5)


@pytest.mark.slow
def test_mindspore_r1_laid_out_as_a_run_directory_of_two_hosts_gives_the_same_figures(tmp_path: Path) -> None:
    # r1.3 names files by device: ranks 2 and 3 are devices 0 and 1 of the second host.
    files = {
        "step_trace_raw_{}_detail_time.csv": "step_trace_raw_{}_detail_time.csv",
        "hccl_raw_{}.csv": "hccl_raw_{}.csv",
        "flops_summary_{}.json": "flops_summary_{}.json",
    }
    for rank in range(4):
        profiler = tmp_path / f"cluster_profiler/{rank // 2 + 1}/profiler"
        profiler.mkdir(parents=True, exist_ok=True)
        for name in files:
            (profiler / name.format(rank % 2)).symlink_to(DATA / "mindspore-r1-4ranks" / name.format(rank))
    devices = [{"device_id": str(rank % 2), "rank_id": str(rank)} for rank in range(4)]
    servers = [
        {"server_id": "10.0.0.1", "device": devices[:2]},
        {"server_id": "10.0.0.2", "device": devices[2:]},
    ]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (tmp_path / "hccl.json").write_text(json.dumps(table))
    (tmp_path / "host_ips_mapping.txt").write_text("10.0.0.1 1\n10.0.0.2 2\n")
    capture = discover(tmp_path)
    assert capture.problems == ()
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    _, flat = read("mindspore-r1-4ranks")
    for source in capture.sources:
        laid_out = read_rank(source)
        for name in ("iterations", "collectives", "links"):
            assert getattr(laid_out, name).equals(getattr(flat[source.rank], name)), (source.rank, name)
        assert laid_out.figures["counters"].equals(flat[source.rank].figures["counters"])


@pytest.mark.slow
def test_sizes_that_r1_does_not_state_are_null_and_make_no_small_packets(tmp_path: Path) -> None:
    with examined(AnalyseOptions(DATA / "mindspore-r1-4ranks", tmp_path)) as run:
        result = judged(run)
    matched = result.tables["matched"]
    assert 0 < matched["size_bytes"].null_count < matched.num_rows
    assert "small_packets" not in {one.kind for one in result.document.findings}
