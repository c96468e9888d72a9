"""Captures of different tools in one tree: which of them belong to one job.

Files of r1.x next to `*_ascend_ms` of the same rank (MindSpore 2.2 to 2.4 writes both) and `PROF_*` next to
a framework's capture are the same run seen twice: the richer form is taken. PyTorch and MindSpore are two
jobs: the one with more ranks is taken, and the other is reported.
"""

from __future__ import annotations

from cluster_analysis.discovery.found import Found
from cluster_run.facts import Fact, fact
from cluster_run.problem import Problem

#: Richest first.
_FAMILIES = ("ascend_pt", "ascend_ms", "mindspore_r1", "prof")
_FRAMEWORKS = ("ascend_pt", "ascend_ms")


def one_job(found: list[Found]) -> tuple[list[Found], list[Problem], list[Fact]]:
    """Return the captures of one job, the problems and the notes that leaving the others out makes."""
    problems: list[Problem] = []
    notes: list[Fact] = []
    ranks = {family: {one.rank for one in found if _family(one) == family} for family in _FAMILIES}
    present = [family for family in _FAMILIES if ranks[family]]
    frameworks = [family for family in present if family in _FRAMEWORKS]
    if len(frameworks) == 2:
        kept, other = sorted(frameworks, key=lambda family: (-len(ranks[family]), family))
        found = [one for one in found if _family(one) != other]
        problems.append(
            Problem(
                fact(
                    "two_frameworks",
                    kept=kept,
                    n_kept=len(ranks[kept]),
                    other=other,
                    n_other=len(ranks[other]),
                ),
                file=f"*_{other}",
                advice="analyse_apart",
            )
        )
    for family in ("mindspore_r1", "prof"):
        richer = {one.rank for one in found if _FAMILIES.index(_family(one)) < _FAMILIES.index(family)}
        # PROF_* may have counted ranks of its own, so next to another tool's captures none of it is read.
        spare = [
            one
            for one in found
            if _family(one) == family and richer and (family == "prof" or one.rank in richer)
        ]
        if spare:
            left_out = {id(one) for one in spare}
            found = [one for one in found if id(one) not in left_out]
            notes.append(fact("family_left_out", n_captures=len(spare), family=family))
    return found, problems, notes


def _family(one: Found) -> str:
    return one.kind.partition("/")[0]
