"""Captures of different tools in one tree: which of them belong to one job.

Files of r1.x beside `*_ascend_ms` of the same rank (MindSpore 2.2 to 2.4 writes both) and `PROF_*` beside
a framework's capture are the same run seen twice: the richer form is taken. PyTorch and MindSpore are two
jobs: the one with more ranks is taken, and the other is told.
"""

from __future__ import annotations

from cluster_analysis.discovery.found import Found
from cluster_run.problem import Problem

#: Richest first.
_FAMILIES = ("ascend_pt", "ascend_ms", "mindspore_r1", "prof")
_FRAMEWORKS = ("ascend_pt", "ascend_ms")


def one_job(found: list[Found]) -> tuple[list[Found], list[Problem], list[str]]:
    """Return the captures of one job, the problems and the notes that leaving the others out makes."""
    problems: list[Problem] = []
    notes: list[str] = []
    ranks = {family: {one.rank for one in found if _family(one) == family} for family in _FAMILIES}
    present = [family for family in _FAMILIES if ranks[family]]
    frameworks = [family for family in present if family in _FRAMEWORKS]
    if len(frameworks) == 2:
        kept, other = sorted(frameworks, key=lambda family: (-len(ranks[family]), family))
        found = [one for one in found if _family(one) != other]
        problems.append(
            Problem(
                f"captures of two frameworks: {_counted(len(ranks[kept]), kept)} analysed, "
                f"{_counted(len(ranks[other]), other)} another job",
                file=f"*_{other}",
                advice="analyse the jobs apart",
            )
        )
    for family in ("mindspore_r1", "prof"):
        richer = {one.rank for one in found if _FAMILIES.index(_family(one)) < _FAMILIES.index(family)}
        # PROF_* may have counted ranks of its own, so beside another tool's captures none of it is read.
        spare = [
            one
            for one in found
            if _family(one) == family and richer and (family == "prof" or one.rank in richer)
        ]
        if spare:
            left_out = {id(one) for one in spare}
            found = [one for one in found if id(one) not in left_out]
            captures, verb = ("capture", "is") if len(spare) == 1 else ("captures", "are")
            notes.append(
                f"{len(spare)} {family} {captures} beside richer ones of the same run {verb} not read"
            )
    return found, problems, notes


def _counted(n_ranks: int, family: str) -> str:
    """So many ranks of a family, with their verb."""
    return f"1 rank of {family} is" if n_ranks == 1 else f"{n_ranks} ranks of {family} are"


def _family(one: Found) -> str:
    return one.kind.partition("/")[0]
