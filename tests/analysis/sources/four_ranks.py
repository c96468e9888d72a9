"""What tests of bad input read and ask of a job of four captures, of which one is bad."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.model import Capture, Topology
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.topology.build import build_topology
from cluster_analysis.topology.use import group_use
from cluster_run.ids import Rank
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import GROUP, OPS, OUTPUT, STEP_ROW, LinkRow

RANKS = 4
BAD = 2


def own_links(rank: int) -> dict[str, list[LinkRow]]:
    """Links of a rank to all four, in its one step."""
    return {"step50": [LinkRow(f"allreduce-top1@{GROUP}", rank, other) for other in range(RANKS)]}


def read_all(root: Path) -> tuple[Capture, dict[int, RankTables]]:
    """Discover a run and read every rank of it."""
    capture = discover(root)
    return capture, {source.rank: read_rank(source) for source in capture.sources}


def problems_of(capture: Capture, tables: dict[int, RankTables]) -> list[tuple[int | None, str, str]]:
    """(rank, file, reason) of everything that discovery and reading complain of."""
    found = [*capture.problems, *(problem for one in tables.values() for problem in one.problems)]
    return [(problem.rank, problem.file, reason(problem)) for problem in found]


def the_problem(job: dict[int, Path]) -> tuple[int | None, str, str]:
    """The one problem of the job; all other ranks are read whole."""
    capture, tables = read_all(job[0].parent)
    for rank in set(range(RANKS)) - {BAD}:
        assert tables[rank].collectives.num_rows == len(OPS)
        assert tables[rank].steps["computing_us"].to_pylist() == [STEP_ROW[0]]
    (problem,) = problems_of(capture, tables)
    return problem


def output_of(job: dict[int, Path], name: str) -> Path:
    """A file of the bad rank's parsed output."""
    return job[BAD] / OUTPUT / name


def topology_of(capture: Capture, tables: dict[int, RankTables]) -> Topology:
    """The topology of ranks that were read; it must have nothing to complain of."""
    use = pa.concat_tables([group_use(one.collectives, one.links) for one in tables.values()])
    topology, problems = build_topology(
        capture, {Rank(rank): metadata_of(one) for rank, one in tables.items()}, use
    )
    assert problems == ()
    return topology
