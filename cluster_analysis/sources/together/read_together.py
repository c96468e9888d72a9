"""The files of several ranks, made into tables together: a call into Arrow takes longer than a few rows.

Plain text files and columns are read at once, all others rank by rank. Files that are not plain (damage,
another form, anything that a reader would report) are refused, and so are databases, and all files without
the compiled reader. Then fewer ranks are read at once; the reader of a single rank reports its problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.sources.columns.place import is_here
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.iterations.place import is_iteration_export
from cluster_analysis.sources.missing import tell_what_is_missing
from cluster_analysis.sources.rank import kernel_kinds, kernel_operators, step_rows, timeline_steps, with_info
from cluster_analysis.sources.rank_figures import read_figures
from cluster_analysis.sources.reading import NoDatabases, Reading, has_databases
from cluster_analysis.sources.together.plain_metadata import plain_metadata
from cluster_analysis.sources.together.plain_text import (
    STEP_TRACE,
    PlainCsv,
    plain_csv,
    plain_links,
    plain_operators,
)
from cluster_analysis.sources.together.refused import FileOfRank, RefusedError
from cluster_analysis.tables.model import RankSource
from cluster_analysis.tables.ranks_tables import Pieces, RanksTables

_StepRows = Sequence[tuple[int, float | None]]


class _Part(Struct, frozen=True):
    """Tables of all ranks, by their names in `RanksTables`; and of each rank what `missing` asks of them."""

    tables: dict[str, Any]
    of_ranks: Sequence[Any] = field(default_factory=tuple)


def read_together(sources: Sequence[RankSource], *, with_spans: bool) -> RanksTables:
    """Return the tables of some ranks, all steps; `with_spans`: where operators lie, too.

    Raises:
        RefusedError: fewer of them are to be read at once; and so is every other exception.
    """
    if compiled() is None or not all(map(_is_usual, sources)):
        raise RefusedError
    readings = [Reading(one) for one in sources]
    described, variables = plain_metadata(_files(sources, "metadata"), len(sources))
    step_times = _files(sources, STEP_TRACE)
    csv = plain_csv(STEP_TRACE, step_times) if step_times else None
    devices = [None] * len(sources) if csv is None else csv.devices
    infos = [
        with_info(reading, metadata, device)
        for reading, metadata, device in zip(readings, described, devices, strict=True)
    ]
    steps = _timelines(readings) if csv is None else _Part({"steps": (csv.table,)}, _rows(csv))
    operators, links = _operators(readings, with_spans=with_spans), _links(sources)
    kinds = _csv("op_statistic", sources) or _pieces(
        reading.first(kernel_kinds(reading.source.rank)) for reading in readings
    )
    of_ranks = zip(readings, infos, steps.of_ranks, operators.of_ranks, links.of_ranks, strict=True)
    for reading, metadata, own_steps, own_operators, n_links in of_ranks:
        tell_what_is_missing(reading, metadata, own_steps, own_operators, n_links)
    known = {"environment": variables, "apis": _csv("api_statistic", sources)}
    figures = [read_figures(reading, NoDatabases(), known) for reading in readings]
    names = {name for one in figures for name in one}
    by_name = {name: tuple(one[name] for one in figures if name in one) for name in names}
    return RanksTables(
        ranks=tuple(one.rank for one in sources),
        metadata={one.rank: metadata for one, metadata in zip(sources, infos, strict=True)},
        problems=tuple(problem for one in readings for problem in one.problems),
        notes=tuple(note for one in readings for note in one.notes),
        operators=kinds,
        figures=by_name | {name: table for name, table in known.items() if table},
        **steps.tables,
        **operators.tables,
        **links.tables,
    )


def import_readers(sources: Iterable[RankSource]) -> None:
    """Import what reads these ranks' files, before processes are forked that would each do it."""
    if any(has_databases(one.files) for one in sources):
        import cluster_analysis.sources.db.of_rank  # noqa: F401, PLC0415


def _is_usual(source: RankSource) -> bool:
    """Return whether a batch may be able to read a rank: known before any file is read."""
    is_text = not has_databases(source.files) and source.kind != "mindspore_r1/text"
    return is_text and not source.windows and not is_iteration_export(source.files)


def _files(sources: Sequence[RankSource], role: str) -> list[FileOfRank]:
    """Return the files of a role, one a rank; none where no rank has one."""
    found = [(one.files[role], int(one.rank)) for one in sources if role in one.files]
    if found and len(found) < len(sources):
        raise RefusedError
    return found


def _csv(role: str, sources: Sequence[RankSource]) -> Pieces:
    files = _files(sources, role)
    return (plain_csv(role, files).table,) if files else ()


def _are_here(files: Sequence[FileOfRank]) -> bool:
    """Return whether the files themselves are there; else all are there as columns."""
    here = {is_here(path) for path, _ in files}
    if len(here) > 1:
        raise RefusedError
    return True in here


def _timelines(readings: Sequence[Reading]) -> _Part:
    found = [reading.first(timeline_steps(reading)) for reading in readings]
    return _Part({"steps": _pieces(found)}, [None if one is None else step_rows(one) for one in found])


def _rows(steps: PlainCsv) -> list[_StepRows]:
    """Return the rows of STEPS of each rank, which lie one behind the other."""
    rows = step_rows(steps.table)
    return [rows[begin:end] for begin, end in pairwise(accumulate(steps.n_rows, initial=0))]


def _operators(readings: Sequence[Reading], *, with_spans: bool) -> _Part:
    files = _files([one.source for one in readings], "communication")
    if not files:
        found = [reading.first(kernel_operators(reading.source.rank)) for reading in readings]
        collectives = [None if one is None else one.collectives for one in found]
        there: list[Set[int] | None] = [
            None if one is None else set(pc.unique(one["step"]).to_pylist()) for one in collectives
        ]
        return _Part({"collectives": _pieces(collectives)}, there)
    if _are_here(files):
        plain = plain_operators(files, with_spans=with_spans)
        tables = {"laid": plain.laid, "packets": (plain.packets,), "spans": plain.spans}
        return _Part(tables, plain.steps)
    from cluster_analysis.sources.together.plain_columns import operators_of_columns  # noqa: PLC0415

    read, steps = operators_of_columns(files)
    return _Part(
        {"collectives": (read.collectives,), "packets": (read.packets,), "sums": (read.sums,)}, steps
    )


def _links(sources: Sequence[RankSource]) -> _Part:
    files = _files(sources, "matrix")
    if not files:
        return _Part({}, [None] * len(sources))
    if _are_here(files):
        plain = plain_links(files)
        return _Part({"links_by_step": plain.by_step}, plain.n_rows)
    from cluster_analysis.sources.together.plain_columns import links_of_columns  # noqa: PLC0415

    table, n_rows = links_of_columns(files)
    return _Part({"links": (table,)}, n_rows)


def _pieces(tables: Iterable[pa.Table | None]) -> Pieces:
    return tuple(one for one in tables if one is not None)
