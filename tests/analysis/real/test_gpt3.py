"""GPT-3, two of 16 ranks, in an older dialect: the merged outputs of all ranks lie beside them."""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cluster_analysis.sources.text.step_trace_csv import COLUMNS
from cluster_analysis.topology.build import map_links
from cluster_run.ids import Rank
from tests.analysis.real.captures import DATA, MB, US_PER_MS, needs_captures, read, topology_of
from tests.analysis.said import reason

pytestmark = needs_captures
REFERENCE = DATA / "gpt3-16ranks-pt/reference_cluster_analysis_output"


def test_gpt3_sends_from_stage_0_to_stage_1_over_rdma() -> None:
    capture, tables = read("gpt3-16ranks-pt")
    topology, _ = topology_of(capture, tables)
    mapped, _ = map_links(pa.concat_tables([one.links for one in tables.values()]), topology)
    sends = mapped.filter(pc.equal(mapped["transport"].cast(pa.string()), "RDMA"))
    pairs = {(row["src_rank"], row["dst_rank"]) for row in sends.to_pylist() if row["is_p2p"]}
    assert pairs == {(0, 8), (1, 9)}
    assert {rank: topology.stages[Rank(rank)] for rank in (0, 1, 8, 9)} == {0: 0, 1: 0, 8: 1, 9: 1}
    assert topology.confidence == "low"


def test_step_times_of_gpt3_are_those_of_the_merged_table() -> None:
    _, tables = read("gpt3-16ranks-pt")
    with (REFERENCE / "cluster_step_trace_time.csv").open() as stream:
        merged = {row["Index"]: row for row in csv.DictReader(stream) if row["Type"] == "rank"}
    for rank, one in tables.items():
        (step,) = one.steps.to_pylist()
        for column, name in COLUMNS.items():
            there = merged[str(rank)].get(name)
            assert step[column] == (None if there is None else pytest.approx(float(there))), (rank, column)


def test_gpt3_has_16_ranks_as_its_merged_outputs_say_though_two_were_captured() -> None:
    capture, tables = read("gpt3-16ranks-pt")
    topology, problems = topology_of(capture, tables)
    merged = json.loads((REFERENCE / "communication_group.json").read_bytes())
    everyone = max(merged["collective"], key=len)
    assert {rank for group in topology.groups.values() for rank in group.ranks} == set(everyone)
    assert [reason(problem) for problem in problems] == [
        "nothing says how many ranks the job has: its groups reach at least rank 9 and divide it into "
        "blocks of 8, so 16 are expected"
    ]


def test_groups_of_gpt3_are_among_those_of_its_merged_outputs() -> None:
    topology, _ = topology_of(*read("gpt3-16ranks-pt"))
    merged = json.loads((REFERENCE / "communication_group.json").read_bytes())
    known = {tuple(sorted(ranks)) for ranks in merged["collective"] + merged["p2p"]}
    found = {group.ranks for group in topology.groups.values()}
    # Those of two ranks over the pipeline have one captured member each: nobody is guessed into them.
    assert found - {(0,), (1,)} <= known
    assert {(0,), (1,)} < found


def test_operators_of_gpt3_are_those_of_its_merged_outputs() -> None:
    _, tables = read("gpt3-16ranks-pt")
    merged = json.loads((REFERENCE / "cluster_communication.json").read_bytes())
    ours = {
        (int(rank), row["op_name"], row["group"]): row
        for rank, one in tables.items()
        for row in one.collectives.to_pylist()
    }
    n_compared = 0
    for steps in merged.values():
        for key, by_rank in steps["step2"].items():
            name, _, group = key.rpartition("@")
            for rank, entry in by_rank.items() if name else ():
                row, times = ours[int(rank), name, group], entry["Communication Time Info"]
                assert row["start_ns"] == Decimal(repr(times["Start Timestamp(us)"])) * 1000
                for ours_name, name_there in (("elapse", "Elapse"), ("transit", "Transit"), ("idle", "Idle")):
                    there = times[f"{name_there} Time(ms)"] * US_PER_MS
                    assert row[f"{ours_name}_us"] == pytest.approx(there, abs=1e-6)
                for transport in ("RDMA", "HCCS"):
                    moved = entry["Communication Bandwidth Info"][transport]
                    assert row[f"{transport.lower()}_bytes"] == pytest.approx(moved["Transit Size(MB)"] * MB)
                    assert row[f"{transport.lower()}_us"] == pytest.approx(
                        moved["Transit Time(ms)"] * US_PER_MS
                    )
                n_compared += 1
    assert n_compared == 6


def test_links_of_gpt3_are_those_of_its_merged_outputs() -> None:
    capture, tables = read("gpt3-16ranks-pt")
    links = pa.concat_tables([one.links for one in tables.values()])
    mapped, _ = map_links(links, topology_of(capture, tables)[0])
    ours = {
        (row["op_name"], row["group"], row["src_rank"], row["dst_rank"]): row for row in mapped.to_pylist()
    }
    merged = json.loads((REFERENCE / "cluster_communication_matrix.json").read_bytes())
    n_compared = 0
    for steps in merged.values():
        for key, by_link in steps["step2"].items():
            name, _, group = key.rpartition("@")
            for ends, link in by_link.items() if name else ():
                source, destination = map(int, ends.split("-"))
                if source >= 8:
                    continue  # Stage 1 was not captured here.
                row = ours[name, group, source, destination]
                assert row["transport"] == link["Transport Type"]
                assert row["size_bytes"] == pytest.approx(link["Transit Size(MB)"] * MB)
                assert row["time_us"] == pytest.approx(link["Transit Time(ms)"] * US_PER_MS)
                n_compared += 1
    assert n_compared == 6


def test_a_damaged_line_of_gpt3_is_left_out_and_told() -> None:
    _, tables = read("gpt3-16ranks-pt")
    (problem,) = tables[0].problems
    assert reason(problem) == "left out: 1 line with another number of cells than the header"
    attention = [row for row in tables[0].operators.to_pylist() if row["op_type"] == "FlashAttentionScore"]
    assert attention[0]["n_calls"] == 3
    assert attention[0]["min_us"] > 6900
