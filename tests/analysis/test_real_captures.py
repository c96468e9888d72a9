"""Figures of files that real profilers wrote, against what other tools and their tests say of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cluster_analysis.discover import discover
from cluster_analysis.model import Capture, RankTables, Topology
from cluster_analysis.sources.profiler_db import read_task_steps
from cluster_analysis.sources.rank import read_rank
from cluster_analysis.sources.step_trace_csv import COLUMNS
from cluster_analysis.sources.task_links_db import read_task_links
from cluster_analysis.topology import build_topology, group_use, map_links
from cluster_run.ids import Rank

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real captures are not at {DATA}")

#: One line of this file lacks a cell, in the middle: whoever reads it by position takes 1.84 µs for 7 ms.
DAMAGED = {("gpt3-16ranks-pt", 0): ["kernel_details.csv"]}
MB = 1e6
US_PER_MS = 1000.0


def read(name: str) -> tuple[Capture, dict[int, RankTables]]:
    capture = discover(DATA / name)
    tables = {source.rank: read_rank(source) for source in capture.sources}
    for rank, one in tables.items():
        assert [problem.file for problem in one.problems] == DAMAGED.get((name, rank), [])
    return capture, tables


def topology_of(capture: Capture, tables: Mapping[int, RankTables]) -> Topology:
    use = pa.concat_tables([group_use(one) for one in tables.values()])
    metadata = {Rank(rank): one.metadata for rank, one in tables.items()}
    topology, problems = build_topology(capture, metadata, use)
    assert problems == ()
    return topology


@pytest.mark.parametrize(
    ("name", "kind", "ranks"),
    [
        ("qwen3-4ranks-pt", "ascend_pt/text", [0, 1, 2, 3]),
        ("gpt3-16ranks-pt", "ascend_pt/text", [0, 1]),
        ("resnet-2of8-pt-text", "ascend_pt/text", [0, 1]),
        ("resnet-2of8-pt-db", "ascend_pt/db", [0, 1]),
        ("mindspore-r1-4ranks", "mindspore_r1/text", [0, 1, 2, 3]),
    ],
)
def test_every_folder_is_read_whole_and_without_a_problem(name: str, kind: str, ranks: list[int]) -> None:
    capture, tables = read(name)
    assert capture.problems == ()
    assert sorted(tables) == ranks
    assert {source.kind for source in capture.sources} == {kind}
    for one in tables.values():
        assert one.steps.num_rows > 0
        assert one.collectives.num_rows > 0
        assert one.links.num_rows > 0


def test_the_step_table_of_qwen3_is_the_peers_to_the_last_digit() -> None:
    _, tables = read("qwen3-4ranks-pt")
    with (DATA / "peer-output/qwen3-4ranks-pt/cluster_step_trace_time.csv").open() as stream:
        peer = {int(row["Index"]): row for row in csv.DictReader(stream) if row["Type"] == "rank"}
    for rank, one in tables.items():
        (step,) = one.steps.to_pylist()
        assert step["step"] == int(peer[rank]["Step"])
        for column, name in COLUMNS.items():
            assert step[column] == float(peer[rank][name]), (rank, column)


def test_the_places_of_qwen3_are_the_peers() -> None:
    topology = topology_of(*read("qwen3-4ranks-pt"))
    with (DATA / "peer-output/qwen3-4ranks-pt/cluster_step_trace_time.csv").open() as stream:
        for row in csv.DictReader(stream):
            if row["Type"] == "rank":
                rank = Rank(int(row["Index"]))
                assert topology.stages[rank] == int(row["PP Index"])
                assert topology.dp_index[rank] == int(row["DP Index"])
                assert topology.tp_index[rank] == int(row["TP Index"])
    assert topology.confidence == "high"


def test_the_groups_of_qwen3_are_the_peers() -> None:
    topology = topology_of(*read("qwen3-4ranks-pt"))
    peer = json.loads((DATA / "peer-output/qwen3-4ranks-pt/communication_group.json").read_bytes())
    for group in peer["comm_group_parallel_info"]:
        ours = topology.groups[group["group_name"]]
        assert (list(ours.ranks), ours.name) == (group["rank_set"], group["pg_name"])


def test_the_operators_of_qwen3_are_the_peers() -> None:
    _, tables = read("qwen3-4ranks-pt")
    peer = json.loads((DATA / "peer-output/qwen3-4ranks-pt/cluster_communication.json").read_bytes())
    n_compared = 0
    ours = {
        (rank, row["op_name"], row["group"]): row
        for rank, one in tables.items()
        for row in one.collectives.to_pylist()
    }
    for kinds in peer.values():
        for ranks_of_step in kinds.values():
            for key, by_rank in ranks_of_step.items():
                name, _, group = key.rpartition("@")
                for rank, entry in by_rank.items() if name != "Total Op Info" else ():
                    row = ours[int(rank), name, group]
                    times, bandwidth = entry["Communication Time Info"], entry["Communication Bandwidth Info"]
                    assert (
                        row["start_ns"]
                        == round(float(times["Start Timestamp(us)"]) % 1e6 * 10) * 100
                        + int(times["Start Timestamp(us)"] // 1e6) * 10**9
                    )
                    assert row["elapse_us"] == pytest.approx(times["Elapse Time(ms)"] * US_PER_MS)
                    assert row["wait_us"] == pytest.approx(times["Wait Time(ms)"] * US_PER_MS)
                    assert row["hccs_bytes"] == pytest.approx(bandwidth["HCCS"]["Transit Size(MB)"] * MB)
                    assert row["hccs_us"] == pytest.approx(bandwidth["HCCS"]["Transit Time(ms)"] * US_PER_MS)
                    n_compared += 1
    assert n_compared == len(ours) == 76


def test_the_links_of_qwen3_have_the_peers_global_ranks() -> None:
    capture, tables = read("qwen3-4ranks-pt")
    links = pa.concat_tables([one.links for one in tables.values()])
    mapped, lost = map_links(links, topology_of(capture, tables))
    assert lost == ()
    assert mapped["src_rank"].null_count == mapped["dst_rank"].null_count == 0
    ours: dict[tuple[str, int, int], list[float]] = {}
    for row in mapped.to_pylist():
        ours.setdefault((row["group"], row["src_rank"], row["dst_rank"]), []).append(row["size_bytes"])
    peer = json.loads((DATA / "peer-output/qwen3-4ranks-pt/cluster_communication_matrix.json").read_bytes())
    n_compared = 0
    for kinds in peer.values():
        for entries in kinds.values():
            for key, by_link in entries.items():
                if "-total@" not in key or "reduce-" in key.split("@")[0].removeprefix("all"):
                    continue
                for ends, link in by_link.items():
                    source, destination = map(int, ends.split("-"))
                    sizes = ours[key.rpartition("@")[2], source, destination]
                    assert any(size == pytest.approx(link["Transit Size(MB)"] * MB) for size in sizes)
                    n_compared += 1
    assert n_compared > 30


def test_the_operators_of_qwen3_are_the_same_in_its_analysis_db() -> None:
    capture, tables = read("qwen3-4ranks-pt")
    for source in capture.sources:
        files = {
            role: path
            for role, path in source.files.items()
            if role not in ("communication", "matrix", "step_trace")
        }
        database = read_rank(type(source)(source.rank, "ascend_pt/db", files, 1))
        text = tables[source.rank]
        for name in ("collectives", "packets", "links"):
            left = [
                {k: v for k, v in row.items() if k != "is_p2p"} for row in getattr(text, name).to_pylist()
            ]
            right = [
                {k: v for k, v in row.items() if k != "is_p2p"} for row in getattr(database, name).to_pylist()
            ]
            key = str
            assert sorted(left, key=key) == sorted(right, key=key) or _nearly(left, right), (
                source.rank,
                name,
            )


def _nearly(left: list[dict], right: list[dict]) -> bool:
    """Equal but for the digits that the text form shortens and a null where an old dialect has no column."""
    assert len(left) == len(right)
    keys = [name for name, value in left[0].items() if not isinstance(value, float)]
    pairs = zip(
        sorted(left, key=lambda row: [str(row[name]) for name in keys]),
        sorted(right, key=lambda row: [str(row[name]) for name in keys]),
        strict=True,
    )
    return all(
        one[name] == other[name]
        if not isinstance(one[name], float)
        else other[name] == pytest.approx(one[name])
        for one, other in pairs
        for name in one
    )


def test_stage_1_of_qwen3_computes_400_ms_against_231_ms() -> None:
    _, tables = read("qwen3-4ranks-pt")
    computing = {rank: one.steps["computing_us"][0].as_py() / US_PER_MS for rank, one in tables.items()}
    assert [round(computing[rank]) for rank in range(4)] == [231, 231, 400, 401]


def test_stored_step_times_of_resnet_are_those_recomputed_from_its_tasks() -> None:
    capture, tables = read("resnet-2of8-pt-db")
    for source in capture.sources:
        recomputed = read_task_steps(Path(source.files["profiler_db"]), source.rank, False, lambda _: None)
        assert recomputed is not None
        for column in COLUMNS:
            (stored,), (computed,) = (
                tables[source.rank].steps[column].to_pylist(),
                recomputed[column].to_pylist(),
            )
            assert computed == pytest.approx(stored, abs=0.001), column


def test_resnet_as_text_and_as_database_has_tables_of_one_shape() -> None:
    # Two runs of one job: the same operators, kernels and links, other times.
    text, database = read("resnet-2of8-pt-text")[1], read("resnet-2of8-pt-db")[1]
    for rank in (0, 1):
        for name in ("steps", "collectives", "links", "packets", "operators"):
            left, right = getattr(text[rank], name), getattr(database[rank], name)
            assert left.schema == right.schema
            assert left.num_rows == right.num_rows, name
        for columns in (["op_type", "core_type", "n_calls"],):
            left, right = (
                sorted(map(str, one[rank].operators.select(columns).to_pylist())) for one in (text, database)
            )
            assert left == right
        sizes = [sorted(one[rank].collectives["hccs_bytes"].to_pylist()) for one in (text, database)]
        assert sizes[0] == pytest.approx(sizes[1])


def test_time_stamps_of_resnet_keep_the_digits_of_the_text() -> None:
    _, tables = read("resnet-2of8-pt-text")
    assert tables[0].collectives["start_ns"][0].as_py() == 1736408883732241500


def test_gpt3_sends_from_stage_0_to_stage_1_over_rdma() -> None:
    capture, tables = read("gpt3-16ranks-pt")
    topology = topology_of(capture, tables)
    mapped, _ = map_links(pa.concat_tables([one.links for one in tables.values()]), topology)
    sends = mapped.filter(pc.equal(mapped["transport"].cast(pa.string()), "RDMA"))
    pairs = {(row["src_rank"], row["dst_rank"]) for row in sends.to_pylist() if row["is_p2p"]}
    assert pairs == {(0, 8), (1, 9)}
    assert {rank: topology.stages[Rank(rank)] for rank in (0, 1, 8, 9)} == {0: 0, 1: 0, 8: 1, 9: 1}
    assert topology.confidence == "low"


def test_step_times_of_gpt3_are_those_of_the_merged_table() -> None:
    _, tables = read("gpt3-16ranks-pt")
    with (
        DATA / "gpt3-16ranks-pt/reference_cluster_analysis_output/cluster_step_trace_time.csv"
    ).open() as stream:
        merged = {row["Index"]: row for row in csv.DictReader(stream) if row["Type"] == "rank"}
    (step,) = tables[0].steps.to_pylist()
    for column in ("computing_us", "communication_us", "free_us"):
        assert step[column] == pytest.approx(float(merged["0"][COLUMNS[column]]))


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
        note = next(note for note in tables[rank].notes if "average row" in note)
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
    topology = topology_of(*read("mindspore-r1-4ranks"))
    assert topology.stages == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topology.groups["op:AllReduce-op4542"].ranks == (0, 1)
    assert topology.groups["op:AllReduce-op17643"].ranks == (2, 3)


def test_computing_of_mindspore_r1_is_that_of_its_cluster_analysis() -> None:
    _, tables = read("mindspore-r1-4ranks")
    assert tables[0].steps["computing_us"].to_pylist() == pytest.approx(
        [13820.2, 14580.6, 14811.9, 15015.9, 14697.4]
    )
    assert tables[2].steps["computing_us"].to_pylist()[0] == pytest.approx(122752.9)


def test_a_damaged_line_of_gpt3_is_left_out_and_told() -> None:
    _, tables = read("gpt3-16ranks-pt")
    (problem,) = tables[0].problems
    assert problem.reason == "left out: 1 line with another number of cells than the header"
    attention = [row for row in tables[0].operators.to_pylist() if row["op_type"] == "FlashAttentionScore"]
    assert attention[0]["n_calls"] == 3
    assert attention[0]["min_us"] > 6900


def test_kernels_summed_from_their_details_are_those_of_the_statistic() -> None:
    capture, tables = read("resnet-2of8-pt-text")
    source = capture.sources[0]
    files = {role: path for role, path in source.files.items() if role != "op_statistic"}
    from_details = read_rank(type(source)(source.rank, source.kind, files, 1)).operators.to_pylist()
    statistic = {(row["op_type"], row["core_type"]): row for row in tables[0].operators.to_pylist()}
    assert len(from_details) == len(statistic) == 33
    for row in from_details:
        expected = statistic[row["op_type"], row["core_type"]]
        assert row["n_calls"] == expected["n_calls"]
        assert row["total_us"] == pytest.approx(expected["total_us"], abs=0.01)
        assert row["max_us"] == pytest.approx(expected["max_us"], abs=0.001)


def test_flops_of_mindspore_r1_lie_51_percent_over_the_mean_in_stage_2() -> None:
    _, tables = read("mindspore-r1-4ranks")
    flops = [
        next(row["value"] for row in tables[rank].counters.to_pylist() if row["metric"] == "flops_count")
        for rank in range(4)
    ]
    assert sum(flops[2:]) / 2 / (sum(flops) / 4) - 1 == pytest.approx(0.5094, abs=5e-5)


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
        for name in ("iterations", "collectives", "links", "counters"):
            assert getattr(laid_out, name).equals(getattr(flat[source.rank], name)), (source.rank, name)


def test_links_of_resnet_summed_from_its_tasks_are_the_totals_of_its_matrix() -> None:
    capture, tables = read("resnet-2of8-pt-db")
    for source in capture.sources:
        from_tasks = read_task_links(Path(source.files["profiler_db"]), source.rank, lambda _: None)
        assert from_tasks is not None
        sums: dict[tuple[int, int, str], list[float]] = {}
        for row in from_tasks.to_pylist():
            one = sums.setdefault((row["src_local"], row["dst_local"], row["transport"]), [0.0, 0.0])
            one[0] += row["size_bytes"]
            one[1] += row["time_us"]
        totals = [row for row in tables[source.rank].links.to_pylist() if row["variant"] == "total"]
        assert len(totals) == len(sums) == 8
        for row in totals:
            size, time = sums[row["src_local"], row["dst_local"], row["transport"]]
            assert size == pytest.approx(row["size_bytes"])
            assert time == pytest.approx(row["time_us"], rel=1e-3)
