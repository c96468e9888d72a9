"""The notes on what could not be judged are sentences for one rank as for several."""

from dataclasses import replace

import pyarrow as pa
import pytest

from cluster_analysis.detection import Detection, detect
from cluster_analysis.evidence import merge_steps
from cluster_analysis.model import Topology
from cluster_analysis.simulation.api import Healthy, JobSpec
from tests.analysis.detection.jobs import (
    NO_LINKS,
    NO_OPERATORS,
    NO_PACKETS,
    collectives_table,
    judged,
    reduce_all,
    small_topology,
    steps_table,
)

SMALL = JobSpec(tp=2, pp=1, dp=4, steps=3, microbatches=2)


def of_totals(where: Topology, ranks: tuple[int, ...]) -> Detection:
    """A job of which only these ranks have step times."""
    totals = steps_table(dict.fromkeys(ranks, 1e6), computing_us=9e5)
    parts = reduce_all(totals, collectives_table([]), NO_LINKS, where)
    return detect(merge_steps(parts, where, NO_OPERATORS, NO_PACKETS), where)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ((3,), "7 of 8 ranks were read: whom the others waited for may be the one that is missing"),
        ((3, 5), "6 of 8 ranks were read: whom the others waited for may be among the 2 that are missing"),
    ],
)
def test_whom_the_others_waited_for_may_be_missing(missing: tuple[int, ...], words: str) -> None:
    assert words in judged(replace(SMALL, healthy=Healthy(missing_ranks=missing))).detection.notes


@pytest.mark.parametrize(
    ("with_times", "words"),
    [
        (7, "1 of 8 ranks has no step times"),
        (6, "2 of 8 ranks have no step times"),
        (1, "1 of 8 ranks was read: whom the others waited for may be among the 7 that are missing"),
    ],
)
def test_ranks_without_step_times_are_counted(with_times: int, words: str) -> None:
    where = small_topology({"g": tuple(range(8))})
    assert words in of_totals(where, tuple(range(with_times))).notes


@pytest.mark.parametrize(
    ("n_alone", "words"),
    [
        (1, "1 rank has fewer than 3 peers: it is described, not judged"),
        (2, "2 ranks have fewer than 3 peers: they are described, not judged"),
    ],
)
def test_ranks_with_few_peers_are_counted(n_alone: int, words: str) -> None:
    ranks = range(6 + n_alone)
    stages = {rank: int(rank >= 6) for rank in ranks}
    where = small_topology({"g": tuple(ranks)}, stages=stages)
    assert words in of_totals(where, tuple(ranks)).notes


def test_steps_that_only_some_ranks_have_are_named() -> None:
    where = small_topology({"g": tuple(range(4))})
    ranks_of = {1: (0, 1, 2, 3), 2: (0, 1, 2), 3: (3,), 4: (0, 1, 2, 3)}
    totals = [steps_table(dict.fromkeys(ranks, 1e6), step=step) for step, ranks in ranks_of.items()]
    parts = reduce_all(pa.concat_tables(totals), collectives_table([]), NO_LINKS, where)
    notes = merge_steps(parts, where, NO_OPERATORS, NO_PACKETS).notes
    assert "steps 2-3: not of all ranks; their other steps are compared" in notes
