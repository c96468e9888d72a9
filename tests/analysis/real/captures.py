"""Real captures, where they lie, and what reading makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.model import Capture, Topology
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.topology.build import build_topology
from cluster_analysis.topology.use import group_use
from cluster_run.ids import Rank
from cluster_run.problem import Problem
from tests.analysis.one_rank import metadata_of, read_rank

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_captures = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real captures are not at {DATA}")

#: One line of this file lacks a cell, in the middle: whoever reads it by position takes 1.84 µs for 7 ms.
DAMAGED = {("gpt3-16ranks-pt", 0): ["kernel_details.csv"]}
MB = 1e6
US_PER_MS = 1000.0


@cache
def read(name: str) -> tuple[Capture, dict[Rank, RankTables]]:
    """The capture of a folder and the tables of its ranks; no rank has a problem but those in DAMAGED."""
    capture = discover(DATA / name)
    tables = {source.rank: read_rank(source) for source in capture.sources}
    for rank, one in tables.items():
        assert [problem.file for problem in one.problems] == DAMAGED.get((name, rank), [])
    return capture, tables


def topology_of(capture: Capture, tables: Mapping[Rank, RankTables]) -> tuple[Topology, tuple[Problem, ...]]:
    """The topology, and what it cannot tell."""
    use = pa.concat_tables([group_use(one.collectives, one.links) for one in tables.values()])
    return build_topology(capture, {rank: metadata_of(one) for rank, one in tables.items()}, use)
