"""Qwen3 on 4 ranks, as text and with analysis.db: what msprof-analyze made of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports.page.traffic import build_traffic
from cluster_analysis.sources.text.step_trace_csv import COLUMNS
from cluster_analysis.tables.model import Selection
from cluster_analysis.topology.build import map_links
from cluster_run.ids import Rank
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA, MB, US_PER_MS, needs_captures, read, topology_of
from tests.analysis.said import summary

pytestmark = needs_captures


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
    topology, _ = topology_of(*read("qwen3-4ranks-pt"))
    with (DATA / "peer-output/qwen3-4ranks-pt/cluster_step_trace_time.csv").open() as stream:
        for row in csv.DictReader(stream):
            if row["Type"] == "rank":
                rank = Rank(int(row["Index"]))
                assert topology.stages[rank] == int(row["PP Index"])
                assert topology.dp_index[rank] == int(row["DP Index"])
                assert topology.tp_index[rank] == int(row["TP Index"])
    assert topology.confidence == "high"


def test_the_groups_of_qwen3_are_the_peers() -> None:
    topology, _ = topology_of(*read("qwen3-4ranks-pt"))
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
    mapped, lost = map_links(links, topology_of(capture, tables)[0])
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


def test_the_first_stage_of_qwen3_waits_for_the_second_and_the_mean_of_both_is_its_loss(
    tmp_path: Path,
) -> None:
    with examined(AnalyseOptions(DATA / "qwen3-4ranks-pt", tmp_path)) as run:
        found = build_traffic(judged(run)).header["groups"]
    groups = {tuple(one["ranks"]): one for one in found if one["role"] == "pp"}
    for first, second, lost_ms in ((0, 2, 191.6), (1, 3, 197.3)):
        pipeline = groups[first, second]
        assert pipeline["wait_us"] / US_PER_MS == pytest.approx(lost_ms, abs=0.1)
        assert (pipeline["last_rank"], round(pipeline["last_share"], 2)) == (second, 0.81)


def test_ranks_2_and_3_of_qwen3_are_devices_4_and_5() -> None:
    topology, _ = topology_of(*read("qwen3-4ranks-pt"))
    assert topology.devices == {0: 0, 1: 1, 2: 4, 3: 5}


def test_a_rank_that_was_not_read_does_not_move_the_mean_of_the_stages(tmp_path: Path) -> None:
    ranks = frozenset(map(Rank, (0, 1, 2)))
    for selection in (Selection(), Selection(ranks=ranks)):
        with examined(AnalyseOptions(DATA / "qwen3-4ranks-pt", tmp_path, selection=selection)) as run:
            found = {one.kind: summary(one) for one in judged(run).document.findings}
        assert "27 % above the mean of the 2 stages" in found["stage_imbalance"]


def test_what_groups_of_two_wait_for_each_other_is_the_difference_that_insight_shows(tmp_path: Path) -> None:
    with examined(AnalyseOptions(DATA / "qwen3-4ranks-pt", tmp_path)) as run:
        rows = judged(run).tables["communication"].to_pylist()
    waits: dict[str, float] = {}
    for row in rows:
        waits[row["group"]] = waits.get(row["group"], 0.0) + row["wait_us"]
    # Its list of slow ranks, totals: dp_cp (0,1), embd (0,2) and (1,3), mp (0,2) and (1,3), dp (2,3).
    shown = (11_367.9, 86_364.6, 86_379.4, 3_978.44, 4_409.0, 9_682.12)
    for one in shown:
        assert any(wait == pytest.approx(one, rel=1e-4) for wait in waits.values()), one
