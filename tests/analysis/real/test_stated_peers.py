"""Whom real files say that messages are for, held against whom their times pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.db.task_peers_db import read_task_peers
from cluster_analysis.sources.errors import Remark
from cluster_analysis.topology.build import map_links
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.peers import Stated
from cluster_run.facts import Fact
from tests.analysis.real.captures import DATA, needs_captures, read, topology_of
from tests.analysis.trace.paired import paired_ends

pytestmark = needs_captures
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
