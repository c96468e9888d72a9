"""A production job with a published cause, in two forms: whom calls met, and what the last stage costs."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.replay.job_evidence import merge_steps
from cluster_analysis.tables.model import Selection, Topology
from cluster_analysis.topology.build import build_topology, map_links
from cluster_analysis.topology.use import group_use
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.hints import Stated
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.ids import Step
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA
from tests.analysis.trace.paired import paired_ends

FOLDER = DATA / "bytedance-ST"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the production trace is not at {FOLDER}")

FORMS = ("batch", "mixed")
Tables = dict[str, pa.Table]


@cache
def tables_of(form: str) -> tuple[Tables, Topology]:
    capture = discover(FOLDER / form, None)
    ranks = [read_rank(source, Selection()) for source in capture.sources]
    tables = {
        name: pa.concat_tables([getattr(one, name) for one in ranks]).unify_dictionaries().combine_chunks()
        for name in ("steps", "collectives", "links", "operators", "packets")
    }
    uses = group_use(tables["collectives"], tables["links"])
    metadata = {rank: own for one in ranks for rank, own in one.metadata.items()}
    where, _ = build_topology(capture, metadata, uses)
    tables["links"], _ = map_links(tables["links"], where)
    return tables, where


def changed(collectives: pa.Table, *, lost: float = 0.0, skew_ms: float = 0.0, seed: int = 1) -> pa.Table:
    """The calls with a share of them lost, and the clocks of the ranks shifted."""
    rng = np.random.default_rng(seed)
    kept = collectives.filter(pa.array(rng.random(collectives.num_rows) >= lost))
    skew_ns = rng.normal(0.0, 1e6 * skew_ms, 64).astype(np.int64)
    start = kept["start_ns"].to_numpy() + skew_ns[kept["rank"].to_numpy()]
    return kept.set_column(kept.schema.get_field_index("start_ns"), "start_ns", pa.array(start))


def accuracy(form: str, collectives: pa.Table, *, stated: bool) -> tuple[float, float]:
    """Shares of the true pairs that are found, and of the found ones that are wrong."""
    tables, where = tables_of(form)
    truth = json.loads((FOLDER / f"truth-{form}.json").read_text())
    right = wrong = wanted = 0
    for step in pc.unique(collectives["step"]).to_pylist():
        own = collectives.filter(pc.equal(collectives["step"], step))
        links = tables["links"].filter(pc.equal(tables["links"]["step"], step))
        calls = calls_of(own)
        peers = Stated(own["op_name"], links) if stated else None
        ends = paired_ends(calls, clock_offsets(calls, match_calls(calls)[0]), where, peers)
        names = own["op_name"].to_pylist()
        call = [(int(calls.ranks[calls.rank[at]]), names[calls.rows[at]]) for at in range(len(calls))]
        found = {
            frozenset((call[at], call[other]))
            for side in (ends.sender, ends.receiver)
            for at, other in enumerate(side.tolist())
            if other >= 0
        }
        true = true_pairs(truth[str(step)], set(call))
        right, wrong, wanted = right + len(found & true), wrong + len(found - true), wanted + len(true)
    return right / wanted, wrong / (right + wrong)


def true_pairs(
    truth: dict[str, dict[str, list[str]]], present: set[tuple[int, str]]
) -> set[frozenset[tuple[int, str]]]:
    sent: dict[str, tuple[int, str]] = {}
    received: dict[str, tuple[int, str]] = {}
    for rank, operators in truth.items():
        for name, messages in operators.items():
            for message in messages:
                source = message.split("/")[2]
                (sent if source == rank else received)[message] = (int(rank), name)
    return {
        frozenset((sent[one], received[one]))
        for one in sent.keys() & received.keys()
        if sent[one] in present and received[one] in present
    }


@pytest.mark.many
@pytest.mark.parametrize("stated", [False, True], ids=["by times alone", "with stated peers"])
@pytest.mark.parametrize("form", FORMS)
def test_all_messages_are_found_and_none_is_wrong(form: str, stated: bool) -> None:
    tables, _ = tables_of(form)
    assert accuracy(form, tables["collectives"], stated=stated) == (1.0, 0.0)


@pytest.mark.many
@pytest.mark.parametrize("lost", [0.002, 0.02])
@pytest.mark.parametrize("form", FORMS)
def test_lost_records_and_skewed_clocks_hide_no_message(form: str, lost: float) -> None:
    collectives = changed(tables_of(form)[0]["collectives"], lost=lost, skew_ms=5.0)
    found, wrong = accuracy(form, collectives, stated=False)
    assert found >= 0.995
    assert wrong <= 0.005


@cache
def found_in(form: str, lost: float = 0.0) -> Detection:
    tables, where = tables_of(form)
    collectives = tables["collectives"]
    if lost:
        collectives = changed(collectives, lost=lost, skew_ms=5.0, seed=3)
    steps = [
        reduce_step(Step(step), tables["steps"], collectives, tables["links"], where)
        for step in sorted(pc.unique(tables["steps"]["step"]).to_pylist())
    ]
    evidence = merge_steps(steps, tables["operators"], tables["packets"])
    return detect(evidence, where)


def cost_ms_of(kind: str, found: Detection) -> float:
    return next(one.cost_ms_per_step or 0.0 for one in found.findings if one.kind == kind)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_published_what_ifs_are_told_within_five_percent(form: str) -> None:
    found = found_in(form)
    assert cost_ms_of("stage_imbalance", found) == pytest.approx(279.0, rel=0.05)  # 288 and 270
    assert cost_ms_of("retransmission", found) == pytest.approx(17.0, rel=0.05)
    assert found.ideal is not None
    assert found.ideal.slowdown == pytest.approx(2.17 / 1.825, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0.002, 0.02])
def test_lost_records_move_the_cost_by_little(lost: float) -> None:
    lossy, whole = (cost_ms_of("stage_imbalance", found_in("mixed", share)) for share in (lost, 0.0))
    assert lossy == pytest.approx(whole, rel=0.05)
