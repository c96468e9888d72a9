"""Reading batches and reducing steps: the value does not depend on how the ranks were cut or ordered."""

from __future__ import annotations

import io
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.joined import canonical, cut_by_step
from cluster_analysis.engine.local import InProcessEngine
from cluster_analysis.engine.read_ranks import read_all
from cluster_analysis.engine.reduce_steps import reduce_all
from cluster_analysis.engine.step_files import StepFiles, StepTables, filed, let_files_go
from cluster_analysis.engine.tasks import (
    SPANS,
    Batch,
    BatchBulk,
    Wanted,
    batches_by_bytes,
    read_batch,
    reduce_pieces,
    spans_of_pieces,
)
from cluster_analysis.tables.model import Capture, RankSource, Topology
from cluster_analysis.tables.schema import COLLECTIVES, LINKS
from cluster_analysis.topology.build import build_topology
from cluster_analysis.trace.reduction import CALLS
from cluster_run.ids import Rank, Step
from tests.analysis.runs import write_small_run


def _source(rank: int, size_bytes: int) -> RankSource:
    return RankSource(Rank(rank), "ascend_pt/text", {}, size_bytes)


@given(
    st.lists(st.integers(0, 50_000_000), min_size=1, max_size=60),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_batches_hold_every_rank_once_in_order(sizes: list[int], n_workers: int, random: object) -> None:
    sources = [_source(rank, size) for rank, size in enumerate(sizes)]
    random.shuffle(sources)  # type: ignore[attr-defined]
    batches = batches_by_bytes(sources, n_workers)
    assert [source.rank for batch in batches for source in batch.sources] == list(range(len(sizes)))
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert all(batch.sources for batch in batches)


def test_a_batch_is_closed_when_it_holds_enough() -> None:
    batches = batches_by_bytes([_source(rank, 10) for rank in range(10)], 1, batch_bytes=25)
    assert [len(batch.sources) for batch in batches] == [3, 3, 3, 1]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return discover(write_small_run(tmp_path_factory.mktemp("run") / "run"))


@pytest.fixture(scope="module")
def topology(capture: Capture) -> Topology:
    summary, _ = read_batch(Batch(0, capture.sources), Wanted())
    return build_topology(capture, summary.metadata, summary.uses)[0]


def _reduced(capture: Capture, topology: Topology, cuts: list[int], stem: str = "") -> bytes:
    """Read the ranks in partitions that begin at `cuts`, reduce step 11, and return all of it as bytes."""
    edges = [0, *sorted(set(cuts)), len(capture.sources)]
    parts, steps = [], []
    for number, (begin, end) in enumerate(pairwise(edges)):
        summary, bulk = read_batch(Batch(number, capture.sources[begin:end]), Wanted(), stem)
        parts.append(bulk.piece(11))
        steps.append(summary.steps)
    evidence, problems = reduce_pieces(Step(11), pa.concat_tables(steps), topology, parts)
    assert problems == ()
    assert evidence.operators is not None
    sink = io.BytesIO()
    for table in (evidence.steps, evidence.matched, evidence.rank_times, evidence.links):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
    sink.write(evidence.operators.instance_gap_us.tobytes() + evidence.operators.instance_operator.tobytes())
    return sink.getvalue()


@pytest.mark.slow
@settings(max_examples=12)
@given(cuts=st.lists(st.integers(1, 7), max_size=7))
def test_a_step_is_the_same_bytes_for_every_partition(
    capture: Capture, topology: Topology, cuts: list[int]
) -> None:
    assert _reduced(capture, topology, cuts) == _reduced(capture, topology, [])


def test_a_step_is_the_same_bytes_from_files_as_from_memory(
    capture: Capture, topology: Topology, tmp_path: Path
) -> None:
    from_files = _reduced(capture, topology, [3, 5], stem=f"{tmp_path}/batch-")
    assert from_files == _reduced(capture, topology, [3, 5])
    assert len(list(tmp_path.iterdir())) == 3 * 2


def test_tables_of_one_step_only_are_read_from_a_file(capture: Capture, tmp_path: Path) -> None:
    _, bulk = read_batch(Batch(0, capture.sources), Wanted(), f"{tmp_path}/batch-")
    assert set(bulk.piece(12).load().collectives["step"].to_pylist()) == {12}


def test_places_of_operators_that_nobody_wants_are_not_kept(capture: Capture, tmp_path: Path) -> None:
    for stem in ("", f"{tmp_path}/batch-"):
        _, with_places = read_batch(Batch(0, capture.sources), Wanted(), stem)
        _, without = read_batch(Batch(1, capture.sources), Wanted(spans=False), stem)
        assert spans_of_pieces([with_places.piece(SPANS)]).num_rows > 0
        assert spans_of_pieces([without.piece(SPANS)]).num_rows == 0
        assert without.piece(12).load() == with_places.piece(12).load()
    assert len(list(tmp_path.iterdir())) == 2 + 1


def test_each_of_many_steps_is_read_from_files_that_stay_open(tmp_path: Path) -> None:
    tables = {
        step: StepTables(
            COLLECTIVES.empty_table(),
            pa.Table.from_pylist([{**dict.fromkeys(LINKS.names), "step": step, "rank": 7}], schema=LINKS),
        )
        for step in range(100)
    }
    files = filed(tables, f"{tmp_path}/batch-0")
    assert [files[step].load().links["step"].to_pylist() for step in files] == [[step] for step in tables]
    maps = Path("/proc/self/maps")
    assert f"{tmp_path}/batch-0" in maps.read_text()
    let_files_go()
    # A thread of Arrow may hold the last of them for a moment.
    assert any(f"{tmp_path}/batch-0" not in maps.read_text() or time.sleep(0.1) for _ in range(100))


def test_steps_that_alternate_are_cut_as_those_in_long_runs() -> None:
    steps = [Step(3), Step(5), Step(9)]
    for length in (1, 200):
        step = np.repeat([3, 5, 7, 3], length).tolist()
        rows = [
            {**dict.fromkeys(LINKS.names), "step": one, "rank": at} for at, one in enumerate([*step, None])
        ]
        cut = cut_by_step(pa.Table.from_pylist(rows, schema=LINKS), steps)
        expected = [[at for at, one in enumerate(step) if one == wanted] for wanted in steps]
        assert [one["rank"].to_pylist() for one in cut] == expected
        assert all(len(one.to_batches()) <= 1 for one in cut)


def test_a_reader_that_raises_costs_one_rank(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = RankSource(Rank(99), "nonsense/text", {"communication": "\0"}, 1)  # type: ignore[arg-type]
    summary, _ = read_batch(Batch(0, (*capture.sources[:2], broken)), Wanted())
    assert {problem.rank for problem in summary.problems} <= {Rank(99)}
    assert set(summary.steps["rank"].to_pylist()) == {0, 1}


def test_canonical_dictionaries_are_sorted_and_hold_no_spares() -> None:
    rows = [dict.fromkeys(LINKS.names) | {"group": group} for group in ("b", "c", "a")]
    table = pa.Table.from_pylist(rows, schema=LINKS)
    joined = canonical([table.slice(2), table.slice(0, 1)], LINKS)
    assert joined["group"].to_pylist() == ["a", "b"]
    assert joined["group"].chunk(0).dictionary.to_pylist() == ["a", "b"]


def test_files_of_calls_alone_have_what_a_step_is_reduced_of(capture: Capture, tmp_path: Path) -> None:
    collectives = []
    for number, calls_alone in enumerate((False, True)):
        batch = Batch(number, capture.sources)
        _, bulk = read_batch(batch, Wanted(calls_alone=calls_alone), f"{tmp_path}/batch-")
        collectives.append(bulk.piece(11).load().collectives)
    assert collectives[0].schema == COLLECTIVES
    assert collectives[1] == collectives[0].select(CALLS.names)


@pytest.mark.parametrize("broken", [10, 11])
def test_links_that_cannot_be_mapped_are_told_whichever_step_fails(capture: Capture, broken: int) -> None:
    engine = InProcessEngine()
    read = read_all(engine, capture.sources, Wanted(), "", lambda *_: None)
    lost = tuple(_Lost(kept, Step(broken)) for kept in read.kept)  # type: ignore[arg-type]
    unknown, _ = build_topology(capture, {}, read.uses.slice(0, 0))
    evidence, problems = reduce_all(engine, structs.replace(read, kept=lost), unknown, lambda *_: None)
    assert broken not in {one.step for one in evidence} != set()
    kinds = [one.kind for one in problems]
    assert kinds.count("step_not_analysed") == 1
    assert kinds.count("links_not_mapped") > 1
    groups = [one.why["group"] for one in problems if one.kind == "links_not_mapped"]
    assert len(set(groups)) == len(groups)


class _Lost(NamedTuple):
    """What a batch kept, without the file of one step."""

    kept: BatchBulk
    step: Step

    def piece(self, key: int) -> object:
        return StepFiles("/nowhere/batch", 0, 1, 0) if key == self.step else self.kept.piece(key)
