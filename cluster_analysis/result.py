"""The outcome of an analysis: all that reports get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables.columns import declared
from cluster_analysis.tables.model import Topology
from cluster_run.findings import FindingsDocument
from cluster_run.ids import HostId
from cluster_run.said.chinese import Language

if TYPE_CHECKING:
    from cluster_analysis.judge.baseline import Comparison


class AnalysisResult(Struct, frozen=True):
    """Findings and the tables behind them.

    `tables` has the keys and schemas of `cluster_analysis.tables.columns`; those that this form of profiler
    data does not have are empty.
    `addresses` is empty unless real host names were asked for.
    """

    document: FindingsDocument
    topology: Topology
    tables: Mapping[str, pa.Table]
    addresses: Mapping[HostId, str] = field(default_factory=dict)

    def table(self, name: str) -> pa.Table:
        """Return a table; one without rows where there is none: outputs of older versions lack some."""
        return self.tables[name] if name in self.tables else declared(name).empty_table()


def no_collectives() -> Sequence[pa.Table]:
    """Return nothing: of a result alone, single calls are not known."""
    return ()


class Reported(Struct, frozen=True):
    """Input of the reports.

    Attributes:
        result: what was found.
        comparison: what changed since the baseline, if one was named.
        analysed: time of the analysis, for people, where the document holds none; not for what must be the
            same for the same input.
        collectives: gives the calls of all ranks, a table of schema COLLECTIVES a step. It takes time:
            a report asks only if it needs them.
    """

    result: AnalysisResult
    comparison: Comparison | None = None
    analysed: str | None = None
    collectives: Callable[[], Sequence[pa.Table]] = no_collectives


class Shown(Struct, frozen=True):
    """Where a text is shown: in which language, how many columns wide, with colours or without.

    `is_verbose`: with how it was computed, too.
    """

    language: Language = "en"
    width: int = 80
    colour: bool = False
    is_verbose: bool = False
