"""The pictures of a page: each if its data are there; if not, the page says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import numbers
from cluster_analysis.reports.page.bubbles import build_bubbles
from cluster_analysis.result import AnalysisResult

#: From this share of the capacity on a longer sequence, or fragments, may be one too many.
FULL_SHARE = 0.92


class Absent(Struct, frozen=True):
    """Pictures that the page lacks: the keys of their titles, and of the reasons."""

    titles: tuple[str, ...]
    why: str


class Sections(Struct, frozen=True):
    """The names of the pictures that are there, and those that are not."""

    shown: frozenset[str]
    absent: tuple[Absent, ...]


def sections_of(result: AnalysisResult) -> Sections:
    """Return what can be drawn of a result."""
    why = {name: lacks(result) for name, (_, lacks) in _PICTURES.items()}
    titles: dict[str, list[str]] = {}
    for name, reason in why.items():
        titles.setdefault(reason, []).append(_PICTURES[name][0])
    absent = tuple(Absent(tuple(own), reason) for reason, own in titles.items() if reason)
    return Sections(frozenset(name for name, reason in why.items() if not reason), absent)


def is_nearly_full(result: AnalysisResult) -> bool:
    """Return whether a rank comes so near to its device's memory that memory stands before other pictures."""
    table = result.table("memory_peaks")
    reserved, allocated, capacity = (
        numbers(table[f"{one}_bytes"]) for one in ("reserved", "allocated", "capacity")
    )
    share = np.where(np.isnan(reserved), allocated, reserved) / np.where(capacity > 0, capacity, np.nan)
    return bool((share >= FULL_SHARE).any())


def _timed(result: AnalysisResult, column: str, too_few: str) -> str:
    """Return why ranks, or steps, cannot be compared."""
    n_timed = pc.count_distinct(result.table("steps")[column]).as_py()
    return "" if n_timed > 1 else too_few if n_timed else "step.none"


def _stages(result: AnalysisResult) -> str:
    return "" if len(set(result.topology.stages.values())) > 1 else "stages.none"


def _bubbles(result: AnalysisResult) -> str:
    return _stages(result) or ("" if build_bubbles(result).columns else "absent.nomessages")


def _lacks(table: str, why: str, fewest: int = 1) -> Callable[[AnalysisResult], str]:
    """Return the function that says why a picture of a table cannot be drawn: it has too few rows."""
    return lambda result: "" if result.table(table).num_rows >= fewest else why


#: Each picture's title, and what says why it cannot be drawn: the key of a word, empty where it can.
_PICTURES: Mapping[str, tuple[str, Callable[[AnalysisResult], str]]] = {
    "lanes": ("lanes.title", _lacks("lanes", "absent.noreplay", 2)),
    "who-waits": ("whowaits.title", _lacks("waits", "absent.noreplay")),
    "bubbles": ("bubbles.title", _bubbles),
    "trend": ("trend.title", lambda result: _timed(result, "step", "absent.onestep")),
    "ranks": ("ranks.title", lambda result: _timed(result, "rank", "absent.onerank")),
    "heat": ("heat.title", lambda result: _timed(result, "rank", "absent.onerank")),
    "cluster": ("map.title", lambda result: "" if len(result.topology.ranks) > 1 else "absent.onerank"),
    "memory": ("memory.title", _lacks("memory_peaks", "absent.nomemory")),
    "communication": ("matrix.title", _lacks("links", "matrix.none")),
    "groups": ("groups.title", _lacks("matched", "groups.none")),
    "operators": ("ops.title", _lacks("matched", "groups.none")),
    "stages": ("stages.title", _stages),
}
