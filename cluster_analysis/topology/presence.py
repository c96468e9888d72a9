"""Who is here: the ranks that a job has, those that were read, and the problems that this makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.tables.model import Capture, Selection, Topology
from cluster_analysis.tables.schema import JUDGED_STEPS
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem


class Presence(Struct, frozen=True):
    """Who is here of a job.

    Attributes:
        seen: ranks with a step or an operator.
        expected: all that the rank table, the metadata or a communication group knows of.
        untimed: ranks without a step whose times are known: they cannot be called healthy.
        is_alone: one rank was read, of a job that has others.
    """

    seen: frozenset[Rank]
    expected: frozenset[Rank]
    untimed: frozenset[Rank]
    is_alone: bool

    @property
    def missing(self) -> list[Rank]:
        """Ranks that nothing was read of."""
        return sorted(self.expected - self.seen)

    @property
    def notes(self) -> tuple[Fact, ...]:
        """What the result says of it."""
        alone = (fact("one_rank_of_several", rank=min(self.seen)),) if self.is_alone else ()
        n_silent, n_ranks = len(self.untimed), len(self.seen)
        untimed = (fact("ranks_without_step_times", n_silent=n_silent, n_ranks=n_ranks),) if n_silent else ()
        return alone + untimed


def who_is_here(
    capture: Capture, topology: Topology, selection: Selection, steps: pa.Table, uses: pa.Table
) -> Presence:
    """Return who of a job is here; of ranks that were not asked for nothing is expected.

    Args:
        capture: what was found.
        topology: its groups and ranks.
        selection: what was asked for.
        steps: STEPS of all ranks.
        uses: USES of all ranks.
    """
    expected = {*capture.expected_ranks, *topology.ranks}
    for group in topology.groups.values():
        expected.update(group.ranks)
    if selection.ranks is not None:
        expected &= selection.ranks
    ranks = [one for table in (steps, uses) for one in pc.unique(table["rank"]).to_pylist()]
    seen = frozenset(map(Rank, ranks))
    is_alone = len(seen) == 1 and (len(expected) > 1 or bool(uses.num_rows))
    return Presence(seen, frozenset(expected), seen - _timed_ranks(steps), is_alone)


def _timed_ranks(steps: pa.Table) -> set[int]:
    """Return the ranks of `steps` (STEPS) that have a step with all that is judged of it."""
    is_known = np.logical_and.reduce([pc.is_valid(steps[name]).to_numpy() for name in JUDGED_STEPS])
    return set(steps["rank"].to_numpy()[is_known].tolist())


def all_problems(
    here: Presence, topology: Topology, met: Iterable[Problem], notes: Iterable[Fact]
) -> tuple[Problem, ...]:
    """Return the problems of a run.

    Args:
        here: who is here.
        topology: which rank is on which host.
        met: the problems of those who looked for captures and read them.
        notes: those of the judge.
    """
    problems = tuple(_with_host(one, topology) for one in met)
    alone = (one for one in notes if one.kind == "no_common_step")
    problems += tuple(Problem(one, advice="record_same_steps") for one in alone)
    return problems + _unnamed_missing(here, problems)


def counts_missing(problem: Problem) -> bool:
    """Return whether a problem is about all ranks that are missing together."""
    return problem.kind == "missing_ranks"


def _with_host(problem: Problem, topology: Topology) -> Problem:
    """Return the problem with the host of its rank, which was not known when it was met."""
    if problem.host is not None or problem.rank is None:
        return problem
    return replace(problem, host=topology.hosts.get(problem.rank))


def _unnamed_missing(here: Presence, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return one problem for all missing ranks that no other problem names."""
    named = {problem.rank for problem in problems}
    unnamed = tuple(rank for rank in here.missing if rank not in named)
    if not unnamed or any(counts_missing(one) for one in problems):
        return ()
    why = fact("missing_ranks", n_missing=len(unnamed), n_ranks=len(here.expected), ranks=unnamed)
    return (Problem(why, advice="collect_them_too"),)
