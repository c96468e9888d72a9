"""Rank rows and stage rows of the step table, for cluster_step_trace_time.csv and ClusterStepTraceTime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.insight.naming import rank_set
from cluster_analysis.sources.text import step_trace_csv
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import rows_of
from cluster_run.ids import Rank

#: Column of STEPS and what Insight calls it, in the order of its file: the profilers have the same.
COLUMNS = tuple(step_trace_csv.COLUMNS.items())
INDEX_COLUMNS = ("DP Index", "PP Index", "TP Index")
#: Never empty: Insight's reader drops an empty last cell and with it the whole row.
NOT_KNOWN = "NA"


class StepRow(Struct, frozen=True):
    """One row. `times` are µs in the order of COLUMNS; `indices` are DP, PP, TP, None where unknown."""

    step: int
    kind: str
    ranks: tuple[int, ...]
    times: tuple[float | None, ...]
    indices: tuple[int, int, int] | None

    @property
    def index(self) -> str:
        """The rank, or the stage's ranks."""
        return str(self.ranks[0]) if self.kind == "rank" else rank_set(self.ranks)


def step_rows(steps: pa.Table, topology: Topology) -> tuple[StepRow, ...]:
    """Return the rank rows by step and rank, then the stage rows.

    A stage row holds the largest value of each column over its ranks, as other tools write it; its
    columns may come from different ranks and need not add up.
    """
    table = steps.sort_by([("step", "ascending"), ("rank", "ascending")])
    rows = [
        StepRow(step, "rank", (rank,), tuple(times), _indices(topology, Rank(rank)))
        for step, rank, *times in rows_of(table, "step", "rank", *(name for name, _ in COLUMNS))
    ]
    return (*rows, *_stage_rows(rows, topology))


def csv_text(rows: Sequence[StepRow]) -> str:
    """Return cluster_step_trace_time.csv.

    The column Preparing and the three indices are left out where no row has them.
    """
    shown = [
        position
        for position, (name, _) in enumerate(COLUMNS)
        if name != "preparing_us" or any(row.times[position] is not None for row in rows)
    ]
    with_indices = any(row.indices for row in rows)
    header = ["Step", "Type", "Index", *(COLUMNS[position][1] for position in shown)]
    lines = [",".join([*header, *(INDEX_COLUMNS if with_indices else ())])]
    for row in rows:
        index = row.index if row.kind == "rank" else f'"{row.index}"'
        cells = [str(row.step), row.kind, index, *(_cell(row.times[position]) for position in shown)]
        if with_indices:
            cells += map(str, row.indices) if row.indices else [NOT_KNOWN] * len(INDEX_COLUMNS)
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def _cell(value: float | None) -> str:
    return NOT_KNOWN if value is None else repr(value)


def _indices(topology: Topology, rank: Rank) -> tuple[int, int, int] | None:
    found = (topology.dp_index.get(rank), topology.stages.get(rank), topology.tp_index.get(rank))
    known = tuple(one for one in found if one is not None)
    return (known[0], known[1], known[2]) if len(known) == len(INDEX_COLUMNS) else None


def _stage_rows(rows: Sequence[StepRow], topology: Topology) -> Iterator[StepRow]:
    if len(set(topology.stages.values())) < 2:
        return
    members: dict[int, list[int]] = {}
    by_place: dict[tuple[int, int], list[StepRow]] = {}
    for rank in sorted({row.ranks[0] for row in rows}):
        stage = topology.stages.get(Rank(rank))
        if stage is not None:
            members.setdefault(stage, []).append(rank)
    for row in rows:
        stage = topology.stages.get(Rank(row.ranks[0]))
        if stage is not None:
            by_place.setdefault((row.step, stage), []).append(row)
    for (step, stage), mine in sorted(by_place.items()):
        times = tuple(
            max((one for one in column if one is not None), default=None)
            for column in zip(*(row.times for row in mine), strict=True)
        )
        yield StepRow(step, "stage", tuple(members[stage]), times, None)
