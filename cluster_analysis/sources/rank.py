"""Reads ranks: every file of their captures, of one rank or of several at once.

A file of one rank that is bad costs that file only. Of several ranks, text files and columns of one role are
read together: a call into Arrow takes longer than a few rows. If one of them is not plain (damage, another
form, anything that its reader would report), all are refused, and fewer ranks are read at once, down to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.db.of_rank import databases_of
from cluster_analysis.sources.db.profiler_db import read_db_host
from cluster_analysis.sources.db.sqlite import kept_open
from cluster_analysis.sources.errors import (
    BadFileError,
    FileOfRank,
    NotTogetherError,
    Remark,
    not_together,
    unheard,
)
from cluster_analysis.sources.iterations.rank import read_iteration_export
from cluster_analysis.sources.measured import (
    MEASURED_LINKS,
    OF_STEPS,
    OF_TORCH_STEPS,
    without_kernels_at_odds,
    without_steps_at_odds,
    without_values,
)
from cluster_analysis.sources.missing import tell_what_is_missing
from cluster_analysis.sources.places import links_in, operators_in
from cluster_analysis.sources.r1.rank import read_r1_rank
from cluster_analysis.sources.rank_figures import read_figures
from cluster_analysis.sources.reading import (
    Candidate,
    Candidates,
    Databases,
    Reading,
    has_databases,
    of_steps,
)
from cluster_analysis.sources.text.communication_json import read_communication, read_matrix
from cluster_analysis.sources.text.kernel_details_csv import communication_of, read_kernels
from cluster_analysis.sources.text.metadata_json import read_metadata, read_profiler_info
from cluster_analysis.sources.text.statistics_csv import read_api_statistic, read_op_statistic
from cluster_analysis.sources.text.step_trace_csv import read_device_of_steps, read_step_trace
from cluster_analysis.sources.text.timeline_json import (
    TIMELINE,
    is_iteration_export,
    read_timeline_steps,
    slice_number,
)
from cluster_analysis.tables.model import RankMetadata, RankSource
from cluster_analysis.tables.rank_tables import BY_STEP, RankTables
from cluster_analysis.tables.schema import TRANSPORT_COLUMNS, one_behind_the_other
from cluster_run.facts import Fact, fact
from cluster_run.ids import DeviceId

_T = TypeVar("_T")
#: Roles of files with step times, the best first.
_STEP_TIMES = ("step_trace", "analysis_db", "profiler_db", TIMELINE)
#: Those of files with kernels.
_KERNELS = ("op_statistic", "kernel_details", "profiler_db")
#: A file's role, and what reads the files of one or more ranks.
_OfFiles: TypeAlias = tuple[str, Callable[[Sequence[FileOfRank], Remark], _T]]
#: The other sources of a table of one rank: see `of_rank.databases_of`.
_Others: TypeAlias = "Callable[[Reading, Databases], Candidates[_T]]"


def read_ranks(
    sources: Sequence[RankSource], steps: frozenset[int] | None, *, with_spans: bool
) -> RankTables:
    """Return the tables of some ranks. Bad data of one rank alone raises nothing: see `RankTables.problems`.

    Args:
        sources: their files.
        steps: the wanted steps; None is all.
        with_spans: whether also where each operator lies in a text.

    Raises:
        NotTogetherError: fewer of several are to be read at once; and so is every other exception.
    """
    is_plain = all(map(_is_usual, sources)) and len({one.kind for one in sources}) == 1
    if len(sources) > 1 and not is_plain:
        raise NotTogetherError
    readings = [Reading(one, steps) for one in sources]
    with kept_open():
        if sources[0].kind == "mindspore_r1/text":
            tables = read_r1_rank(readings[0])
        elif is_iteration_export(sources[0].files):
            tables = read_iteration_export(readings[0])
        else:
            tables = _read_ascend(readings, with_spans)
    wanted: dict[str, Any] = {} if steps is None else {
        name: of_steps(getattr(tables, name), steps) for name in BY_STEP
    }  # fmt: skip
    return replace(
        tables,
        problems=tuple(problem for one in readings for problem in one.problems),
        notes=tuple(note for one in readings for note in one.notes),
        **wanted,
    )


def _is_usual(source: RankSource) -> bool:
    """Return whether a rank may be read with others: known before any file is read."""
    is_text = not has_databases(source.files) and source.kind != "mindspore_r1/text"
    return is_text and not source.windows and not is_iteration_export(source.files)


class _Ranks:
    """Ranks that are read at once: one, or several with text files alike."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._all = [(one, databases_of(one)) for one in readings]

    def text_first(self, of_files: _OfFiles[_T], others: _Others[_T]) -> Sequence[_T | None]:
        """Return what the text files of a role give: one value of all ranks, or one of each.

        A rank that is read alone, and all where none has such a file, is asked for `others` in turn.
        """
        role, read = of_files
        files = [
            (one.source.files[role], int(one.source.rank)) for one, _ in self._all if role in one.source.files
        ]
        if 0 < len(files) < len(self._all):
            raise NotTogetherError
        if len(files) > 1:
            return (read(files, not_together),)

        def read_one(path: Path, remark: Remark) -> _T:
            return read([(str(path), files[0][1])], remark)

        return [one.first((role, read_one), *others(one, databases)) for one, databases in self._all]

    def each(self, read: Callable[[Reading, Databases], _T]) -> list[_T]:
        """Return what is read of each rank by itself."""
        return [read(one, databases) for one, databases in self._all]


def _read_ascend(readings: Sequence[Reading], with_spans: bool) -> RankTables:
    """Read captures of PyTorch, MindSpore 2.x or CANN: text where there is text, databases otherwise."""
    ranks = _Ranks(readings)
    metadata = ranks.each(_metadata)
    identities = OF_TORCH_STEPS if readings[0].source.kind.startswith("ascend_pt") else OF_STEPS
    steps = ranks.text_first(
        ("step_trace", lambda files, remark: read_step_trace(files, remark, identities)),
        lambda one, db: (*db["steps"], _timeline_steps(one)),
    )
    communication = ranks.text_first(
        ("communication", lambda files, remark: read_communication(files, remark, with_spans=with_spans)),
        lambda one, db: (*db["communication"], _kernel_operators(one)),
    )
    communication = [None if one is None else _with_groups(one, readings) for one in communication]
    links = ranks.text_first(("matrix", read_matrix), lambda _, db: db["links"])
    peers = ranks.each(lambda one, db: one.first(*db["peers"]))
    operators = ranks.text_first(
        ("op_statistic", read_op_statistic), lambda one, db: (_kernel_kinds(one), *db["operators"])
    )
    collectives = [None if one is None else one.collectives for one in communication]
    known = [one for one in collectives if one is not None]
    known_steps = [one for one in steps if one is not None]
    operators = [
        one and without_kernels_at_odds(one, known_steps, _telling(readings, _KERNELS)) for one in operators
    ]
    steps = [one and without_steps_at_odds(one, known, _telling(readings, _STEP_TIMES)) for one in steps]
    of_ranks = zip(
        readings,
        metadata,
        _by_rank(steps, readings, _step_times),
        _by_rank(collectives, readings, operators_in),
        _by_rank(links, readings, links_in),
        strict=True,
    )
    at_odds = [int(own[0].source.rank) for own in of_ranks if tell_what_is_missing(*own)]
    links = [one and _unjudged(one, at_odds, MEASURED_LINKS) for one in links]
    communication = [
        one and replace(one, collectives=_unjudged(one.collectives, at_odds, TRANSPORT_COLUMNS))
        for one in communication
    ]
    figures = ranks.each(read_figures)
    apis = ranks.text_first(("api_statistic", read_api_statistic), lambda _, db: db["apis"])
    figures += [{"apis": one} for one in apis if one is not None]
    found = {
        "steps": steps,
        "links": (*links, *peers),
        "operators": operators,
        **{
            name: [None if one is None else getattr(one, name) for one in communication]
            for name in CommunicationTables.__struct_fields__
        },
    }
    names = dict.fromkeys(name for one in figures for name in one)
    return RankTables(
        metadata={one.source.rank: own for one, own in zip(readings, metadata, strict=True)},
        figures=_together({name: [one.get(name) for one in figures] for name in names}),
        **_together(found),
    )


def _with_groups(tables: CommunicationTables, readings: Sequence[Reading]) -> CommunicationTables:
    """Return the tables with a group for each operator; that files name none is noted."""
    grouped, ranks = tables.with_own_groups()
    for reading in readings:
        if int(reading.source.rank) in ranks:
            reading.notes.append(fact("no_groups_named", ranks=(reading.source.rank,)))
    return grouped


def _telling(readings: Sequence[Reading], roles: Sequence[str]) -> Remark:
    """Return what takes a contradiction, and names the first file of one of these roles."""

    def tell(why: Fact, *also: Fact) -> None:
        if len(readings) > 1:
            not_together(why, *also)
        files = readings[0].source.files
        named = next((files[role] for role in roles if role in files), "")
        readings[0].problem(why, Path(named).name, None, *also)

    return tell


def _metadata(reading: Reading, databases: Databases) -> RankMetadata:
    """Return what a rank says of itself, with its device, its host, and what profiler_info.json adds."""
    metadata: RankMetadata = reading.first(
        ("metadata", lambda path, _: read_metadata(path)), *databases["metadata"]
    ) or RankMetadata()  # fmt: skip
    if not metadata.host_name:
        own = metadata
        metadata = reading.first(("profiler_db", lambda path, _: read_db_host(path, own))) or metadata
    device = _device(reading, databases)
    metadata = replace(metadata, device=None if device is None else DeviceId(device))
    info = reading.first(("profiler_info", lambda path, _: read_profiler_info(path)))
    return metadata if info is None else replace(metadata, profiler_level=info[0], versions=info[1])


def _device(reading: Reading, databases: Databases) -> int | None:
    """Return the device that a file names. The file's own reader reports what is wrong with it."""
    readers: Candidates[int] = (
        ("step_trace", lambda path, _: read_device_of_steps(path)),
        *databases["device"],
    )
    for role, read in readers:
        path = reading.source.files.get(role)
        if path is not None:
            with suppress(BadFileError):
                device = read(Path(path), unheard)
                if device is not None:
                    return device
    return None


def _timeline_steps(reading: Reading) -> Candidate[pa.Table]:
    """Return what gives STEPS of the timeline's slices."""
    slices = [Path(path) for role, path in reading.source.files.items() if role.partition("/")[0] == TIMELINE]
    timeline = sorted(slices, key=slice_number)
    return TIMELINE, lambda _, remark: read_timeline_steps(timeline, reading.source.rank, remark)


def _kernel_operators(reading: Reading) -> Candidate[CommunicationTables]:
    """Return what gives operators of communication where only the table of kernels has them."""

    def read(path: Path, remark: Remark) -> CommunicationTables | None:
        kernels = reading.once(read_kernels, path, remark)
        return communication_of(kernels.calls, reading.source.rank)

    return "kernel_details", read


def _kernel_kinds(reading: Reading) -> Candidate[pa.Table]:
    """Return what gives OPERATORS of the table of kernels."""

    def read(path: Path, remark: Remark) -> pa.Table | None:
        return reading.once(read_kernels, path, remark).sums.operators(reading.source.rank)

    return "kernel_details", read


def _by_rank(
    tables: Sequence[pa.Table | None],
    readings: Sequence[Reading],
    asked: Callable[[pa.Table], Mapping[int, _T]],
) -> list[_T | None]:
    """Return what is asked of the tables, by rank; None for a rank without a table."""
    found = [None if one is None else asked(one) for one in tables]
    of_each = found * len(readings) if len(found) == 1 else found
    return [
        None if one is None else one[int(reading.source.rank)]
        for one, reading in zip(of_each, readings, strict=True)
    ]


def _step_times(steps: pa.Table) -> Mapping[int, list[tuple[int, float | None]]]:
    """Return the steps of each rank of STEPS, and how long each communicated, µs."""
    found: dict[int, list[tuple[int, float | None]]] = defaultdict(list)
    # Exposed communication is a part of it.
    times = pc.coalesce(steps["communication_us"], steps["communication_not_overlapped_us"])
    columns = (one.to_pylist() for one in (steps["rank"], steps["step"], times))
    for rank, step, time_us in zip(*columns, strict=True):
        found[rank].append((step, time_us))
    return found


def _unjudged(table: pa.Table, ranks: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return the table with null in `columns` of some ranks."""
    return without_values(table, np.isin(table["rank"].to_numpy(), ranks), columns)


def _together(tables: Mapping[str, Sequence[pa.Table | None]]) -> dict[str, Any]:
    """Return the tables of each name as one; none of a name that has none."""
    there = {name: [one for one in own if one is not None] for name, own in tables.items()}
    return {name: one_behind_the_other(own) for name, own in there.items() if own}
