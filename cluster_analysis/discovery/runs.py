"""Run directories below a path: each is one job with a rank table and hosts of its own.

Captures of two runs are never mixed, whatever their ranks and times: one run is analysed.

Captures of different tools in one run: files of r1.x next to `*_ascend_ms` of the same rank (MindSpore 2.2 to
2.4 writes both) and `PROF_*` next to a framework's capture are the same job seen twice, of which the richer
form is taken. PyTorch and MindSpore are two jobs: that with more ranks is taken, and the other is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from cluster_analysis.discovery.found import Found, Tree
from cluster_analysis.discovery.parts import Part
from cluster_analysis.discovery.places import Places
from cluster_run import layout
from cluster_run.facts import Fact, fact
from cluster_run.problem import Problem

_T = TypeVar("_T")
#: Richest first.
_FAMILIES = ("ascend_pt", "ascend_ms", "mindspore_r1", "prof")
_FRAMEWORKS = ("ascend_pt", "ascend_ms")


class RunDirectory(Struct, frozen=True):
    """Findings of the walk in one run directory; `root` holds its rank table. A plain tree is one run.

    It is not whole where a directory inside of it was named. `parts` are known once all runs are.
    """

    root: Path
    tree: Tree
    places: Places
    found: Sequence[Found]
    problems: Sequence[Problem]
    notes: Sequence[Fact] = ()
    parts: Sequence[Part] = ()
    is_whole: bool = True


def enclosing_run(path: Path) -> Path | None:
    """Return the run directory that `path` is a part of; None where it is a run itself, or lies in none."""
    parts = path.resolve().parts
    if layout.PROFILER_TREE_NAME not in parts or (path / layout.PROFILER_TREE_NAME).is_dir():
        return None
    last = len(parts) - 1 - parts[::-1].index(layout.PROFILER_TREE_NAME)
    return Path(*parts[:last])


def split_by_run(tree: Tree, path: Path) -> dict[Path, Tree]:
    """Return what lies in each run directory below `path`; under `path` itself what lies in none."""
    roots = {_root_of(one, path) for one in tree.captures} or {path}

    def outside_others(root: Path, known: Mapping[Path, _T]) -> dict[Path, _T]:
        """Problems of places outside of all runs concern them all."""
        return {one: what for one, what in known.items() if _root_of(one, path) not in roots - {root}}

    return {
        root: Tree(
            outside_others(root, tree.captures),
            outside_others(root, tree.unreadable),
            outside_others(root, tree.foreign),
        )
        for root in sorted(roots)
    }


def _root_of(directory: Path, path: Path) -> Path:
    parts = directory.relative_to(path).parts
    if layout.PROFILER_TREE_NAME not in parts:
        return path
    return path.joinpath(*parts[: parts.index(layout.PROFILER_TREE_NAME)])


def name_of(run: RunDirectory, path: Path) -> str:
    """Return the name of a run below `path`."""
    return run.root.relative_to(path).as_posix()


def one_job(found: list[Found]) -> tuple[list[Found], list[Problem], list[Fact]]:
    """Return the captures of one job, and the problems and notes about the others that are left out."""
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
