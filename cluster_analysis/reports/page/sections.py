"""Which pictures a page has: each where its data are; where they are not, the page says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.reports.page.bubbles import build_bubbles
from cluster_analysis.result import AnalysisResult


class Absent(Struct, frozen=True):
    """Pictures that the page has not: the words of their titles, and of why."""

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


def _n_rows(result: AnalysisResult, name: str) -> int:
    table = result.tables.get(name)
    return 0 if table is None else int(table.num_rows)


def _n_timed(result: AnalysisResult, column: str) -> int:
    """Return how many ranks, or steps, have step times."""
    return int(pc.count_distinct(result.tables["steps"][column]).as_py()) if _n_rows(result, "steps") else 0


def _ranks_to_compare(result: AnalysisResult) -> str:
    n_ranks = _n_timed(result, "rank")
    return "" if n_ranks > 1 else "absent.onerank" if n_ranks else "step.none"


def _steps_to_compare(result: AnalysisResult) -> str:
    n_steps = _n_timed(result, "step")
    return "" if n_steps > 1 else "absent.onestep" if n_steps else "step.none"


def _several_ranks(result: AnalysisResult) -> str:
    return "" if len(result.topology.ranks) > 1 else "absent.onerank"


def _links(result: AnalysisResult) -> str:
    return "" if _n_rows(result, "links") else "matrix.none"


def _matched(result: AnalysisResult) -> str:
    return "" if _n_rows(result, "matched") else "groups.none"


def _stages(result: AnalysisResult) -> str:
    return "" if len(set(result.topology.stages.values())) > 1 else "stages.none"


def _lanes(result: AnalysisResult) -> str:
    return "" if _n_rows(result, "lanes") > 1 else "absent.noreplay"


def _waits(result: AnalysisResult) -> str:
    return "" if _n_rows(result, "waits") else "absent.noreplay"


def _bubbles(result: AnalysisResult) -> str:
    return _stages(result) or ("" if build_bubbles(result).columns else "absent.nomessages")


def _memory(result: AnalysisResult) -> str:
    return "" if _n_rows(result, "memory_peaks") else "absent.nomemory"


#: Each picture's title, and what says why it cannot be drawn: the key of a word, empty where it can.
_PICTURES: Mapping[str, tuple[str, Callable[[AnalysisResult], str]]] = {
    "lanes": ("lanes.title", _lanes),
    "who-waits": ("whowaits.title", _waits),
    "bubbles": ("bubbles.title", _bubbles),
    "trend": ("trend.title", _steps_to_compare),
    "ranks": ("ranks.title", _ranks_to_compare),
    "heat": ("heat.title", _ranks_to_compare),
    "cluster": ("map.title", _several_ranks),
    "memory": ("memory.title", _memory),
    "communication": ("matrix.title", _links),
    "groups": ("groups.title", _matched),
    "operators": ("ops.title", _matched),
    "stages": ("stages.title", _stages),
}
