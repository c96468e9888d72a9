"""The files of several ranks, made into tables together: a call into Arrow takes longer than a few rows.

Text files and columns are read at once, all others rank by rank. Files that are not plain (damage, another
form, anything that a reader would report) are refused, and so are databases. Then fewer ranks are read at
once; the reader of a single rank reports its problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.sources.errors import FileOfRank, RefusedError, Remark, refuse
from cluster_analysis.sources.iterations.place import is_iteration_export
from cluster_analysis.sources.missing import tell_what_is_missing
from cluster_analysis.sources.rank import (
    BY_STEP,
    kernel_kinds,
    kernel_operators,
    step_rows,
    steps_in,
    steps_of_ranks,
    timeline_steps,
    with_info,
)
from cluster_analysis.sources.rank_figures import read_figures
from cluster_analysis.sources.reading import NoDatabases, Reading, has_databases, of_steps, path_of
from cluster_analysis.sources.text.communication_json import read_communication
from cluster_analysis.sources.text.csv_text import read_alike
from cluster_analysis.sources.text.environment_json import Variables, environment_of_ranks, variables_of
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.sources.text.matrix_json import read_matrix
from cluster_analysis.sources.text.metadata_json import parse_metadata
from cluster_analysis.sources.text.statistics_csv import apis_of, operators_of
from cluster_analysis.sources.text.step_trace_csv import devices_of, steps_of
from cluster_analysis.tables.model import RankMetadata, RankSource
from cluster_analysis.tables.rank_tables import Pieces, RanksTables

_StepRows = Sequence[tuple[int, float | None]]
_TextTable = Callable[[pa.Table, npt.NDArray[np.int32], Remark], pa.Table]
_STEP_TRACE = "step_trace"
#: Of each role of a CSV file how its text becomes a table.
_TABLES: Mapping[str, _TextTable] = {
    _STEP_TRACE: steps_of,
    "op_statistic": operators_of,
    "api_statistic": apis_of,
}


class _Part(Struct, frozen=True):
    """Tables of all ranks, by their names in `RanksTables`; and of each rank what `missing` asks of them."""

    tables: dict[str, Any]
    of_ranks: Sequence[Any] = field(default_factory=tuple)


def read_together(
    sources: Sequence[RankSource], steps: frozenset[int] | None = None, *, with_spans: bool
) -> RanksTables:
    """Return the tables of some ranks.

    Args:
        sources: their files.
        steps: the wanted steps; None is all.
        with_spans: whether also where each operator lies in a text.

    Raises:
        RefusedError: fewer of them are to be read at once; and so is every other exception.
    """
    if not all(map(_is_usual, sources)):
        raise RefusedError
    readings = [Reading(one, steps) for one in sources]
    described, variables = _metadata(_files(sources, "metadata"), len(sources))
    traces = _files(sources, _STEP_TRACE)
    csv = _read_csv(_STEP_TRACE, traces) if traces else None
    devices = [None] * len(sources) if csv is None else csv.devices
    infos = [
        with_info(reading, metadata, device)
        for reading, metadata, device in zip(readings, described, devices, strict=True)
    ]
    step_times = _timelines(readings) if csv is None else _Part({"steps": (csv.table,)}, _rows(csv))
    operators, links = _operators(readings, with_spans=with_spans), _links(sources)
    kinds = _csv("op_statistic", sources) or _pieces(
        reading.first(kernel_kinds(reading.source.rank)) for reading in readings
    )
    of_ranks = zip(readings, infos, step_times.of_ranks, operators.of_ranks, links.of_ranks, strict=True)
    for reading, metadata, own_steps, own_operators, own_links in of_ranks:
        tell_what_is_missing(reading, metadata, own_steps, own_operators, own_links)
    known = {"environment": variables, "apis": _csv("api_statistic", sources)}
    figures = [read_figures(reading, NoDatabases(), known) for reading in readings]
    names = {name for one in figures for name in one}
    by_name = {name: tuple(one[name] for one in figures if name in one) for name in names}
    tables = RanksTables(
        ranks=tuple(one.rank for one in sources),
        metadata={one.rank: metadata for one, metadata in zip(sources, infos, strict=True)},
        problems=tuple(problem for one in readings for problem in one.problems),
        notes=tuple(note for one in readings for note in one.notes),
        operators=kinds,
        figures=by_name | {name: table for name, table in known.items() if table},
        **step_times.tables,
        **operators.tables,
        **links.tables,
    )
    return tables if steps is None else _of_steps(tables, steps)


def _of_steps(tables: RanksTables, steps: frozenset[int]) -> RanksTables:
    """Return the rows of some steps."""
    return replace(
        tables,
        **{name: tuple(of_steps(one, steps) for one in getattr(tables, name)) for name in BY_STEP},
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


def _metadata(files: Sequence[FileOfRank], n_ranks: int) -> tuple[list[RankMetadata], Pieces]:
    """Return what each rank says of itself, and ENVIRONMENT of those that record variables.

    Each file is read once for both. Without files nothing is known of `n_ranks` ranks.
    """
    metadata: list[RankMetadata] = []
    variables: list[tuple[int, Variables]] = []
    for path, rank in files:
        content = read_bytes(path_of(path))
        metadata.append(parse_metadata(content))
        own = variables_of(content)
        if own:
            variables.append((rank, own))
    environment = (environment_of_ranks(variables),) if variables else ()
    return metadata or [RankMetadata()] * n_ranks, environment


class _Csv(Struct, frozen=True):
    """The table of all files, how many rows of each, and of step times the device that each says it is of."""

    table: pa.Table
    n_rows: Sequence[int]
    devices: Sequence[int | None]


def _read_csv(role: str, files: Sequence[FileOfRank]) -> _Csv:
    """Return what CSV files of one of `_TABLES` hold."""
    paths, of_files = zip(*files, strict=True)
    alike = read_alike(paths, refuse)
    if alike is None:
        raise RefusedError
    ranks = np.repeat(np.array(of_files, np.int32), alike.n_rows)
    table = _TABLES[role](alike.text, ranks, refuse)
    return _Csv(table, alike.n_rows, devices_of(alike.text, alike.n_rows) if role == _STEP_TRACE else ())


def _csv(role: str, sources: Sequence[RankSource]) -> Pieces:
    files = _files(sources, role)
    return (_read_csv(role, files).table,) if files else ()


def _timelines(readings: Sequence[Reading]) -> _Part:
    found = [reading.first(timeline_steps(reading)) for reading in readings]
    return _Part({"steps": _pieces(found)}, [None if one is None else step_rows(one) for one in found])


def _rows(steps: _Csv) -> list[_StepRows]:
    """Return the rows of STEPS of each rank, which lie one behind the other."""
    rows = step_rows(steps.table)
    return [rows[begin:end] for begin, end in pairwise(accumulate(steps.n_rows, initial=0))]


def _operators(readings: Sequence[Reading], *, with_spans: bool) -> _Part:
    files = _files([one.source for one in readings], "communication")
    if not files:
        found = [reading.first(kernel_operators(reading.source.rank)) for reading in readings]
        collectives = [None if one is None else one.collectives for one in found]
        return _Part({"collectives": _pieces(collectives)}, list(map(steps_in, collectives)))
    read = read_communication(files, refuse, with_spans=with_spans)
    names = ("collectives", "packets", "spans", "sums")
    steps = steps_of_ranks(read.collectives, [rank for _, rank in files])
    return _Part({name: (getattr(read, name),) for name in names}, steps)


def _links(sources: Sequence[RankSource]) -> _Part:
    files = _files(sources, "matrix")
    if not files:
        return _Part({}, [None] * len(sources))
    links = read_matrix(files, refuse)
    return _Part({"links": (links,)}, steps_of_ranks(links, [rank for _, rank in files]))


def _pieces(tables: Iterable[pa.Table | None]) -> Pieces:
    return tuple(one for one in tables if one is not None)
