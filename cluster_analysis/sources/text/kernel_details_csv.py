"""kernel_details.csv: one row a kernel, in µs; summed by name and shapes.

By type, too, where op_statistic.csv is missing. Always read block by block, since a rank may have
hundreds of MB of it.

Its rows of communication stand in for communication.json, which captures of Level0 do not have.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from msgspec import Struct

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.columns.columns import are_places, damaged
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import BadFileError, Remark, as_bad_file, tell_left_out, unheard
from cluster_analysis.sources.kernel_groups import KEYS, KernelSums
from cluster_analysis.sources.text.csv_text import csv_options, finished, read_lines
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_reduce.levels import parse_step
from cluster_reduce.sums.kernel_details import (
    CARRIERS,
    COLUMNS_OF_KEYS,
    COMMUNICATION,
    DURATION,
    NEEDED,
    START,
    STEP,
    WAIT,
    as_we_spell,
)
from cluster_run.facts import fact

#: Rows of these are communication operators, which communication.json holds.
_COMMUNICATION = pa.array(COMMUNICATION)
_CARRIERS = rf"(?:{'|'.join(CARRIERS)})$"
_BLOCK_BYTES = 8 * 1024 * 1024
_LONGEST_LINE_BYTES = 1024 * 1024


class Kernels(Struct, frozen=True):
    """What a file holds.

    Attributes:
        sums: its kernels, summed by those of KEYS that it has.
        calls: its rows of communication: step (as the file spells it), name, start_ns and elapse_us.
    """

    sums: KernelSums
    calls: pa.Table


def read_kernels(path: Path, remark: Remark) -> Kernels:
    """Return what a file, or its columns, holds. Memory does not grow with the number of kernels."""
    columns = columns_of(path)
    if columns is not None:
        return kernels_of_columns(columns)
    header = _header(path)
    summed = KernelSums()
    n_bad = 0
    skipped: list[int] = []
    named = {key: column for key, column in COLUMNS_OF_KEYS.items() if column in header}
    more = [name for name in (DURATION, START, WAIT, STEP) if name in header]
    called: list[pa.Table] = []
    for text in _blocks(path, [*named.values(), *more], header, skipped, remark):
        durations, bad = numbers.to_float64(text[DURATION])
        lengths = numbers.us_to_ps(durations)
        is_time = pc.fill_null(pc.greater_equal(lengths, 0), False)
        n_bad += bad + len(text) - durations.null_count - (pc.sum(is_time).as_py() or 0)
        waits = numbers.to_float64(text[WAIT])[0] if WAIT in header else pa.nulls(len(text), pa.float64())
        keys = {
            key: pc.replace_substring(text[named[key]], '"', "") if key in named else pa.repeat("", len(text))
            for key in KEYS
        }
        block = pa.table({**keys, "ps": lengths, "wait_ps": numbers.us_to_ps(waits)})
        is_call = pc.is_in(block["core_type"], value_set=_COMMUNICATION)
        summed.add(block.filter(pc.and_(pc.invert(is_call), is_time)))
        is_call = pc.and_not(is_call, pc.match_substring_regex(text["Name"], _CARRIERS))
        called.append(text.select(["Name", *more]).filter(is_call))
    tell_left_out(remark, len(skipped), "line", "other_number_of_cells")
    tell_left_out(remark, n_bad, "duration", "no_number")
    return Kernels(summed, _calls(called))


def _calls(called: list[pa.Table]) -> pa.Table:
    empty = pa.table({name: pa.array([], pa.string()) for name in ("Name", DURATION, START)})
    text = pa.concat_tables(called or [empty]).combine_chunks()
    return pa.table(
        {
            "step": text[STEP] if STEP in text.column_names else pa.repeat("0", text.num_rows),
            "name": text["Name"],
            "start_ns": numbers.to_ns(text[START].combine_chunks())[0],
            "elapse_us": numbers.to_float64(text[DURATION])[0],
        }
    )


def communication_of(calls: pa.Table, rank: int) -> CommunicationTables | None:
    """Return COLLECTIVES by start and length alone of `Kernels.calls`; None where there are none.

    The name holds three digits of the group's hash, which two groups may share: so a group is of this rank
    alone, and nothing is matched over ranks.
    """
    if not calls.num_rows:
        return None
    called = calls["name"].combine_chunks()
    digits = pc.extract_regex(called, r"__(?P<group>\d+)_\d+").field("group")
    table = schema.rows(
        schema.COLLECTIVES,
        rank,
        step=[parse_step(cell) for cell in calls["step"].to_pylist()],
        group=[f"{OWN_GROUP_PREFIX}{rank}:{one or ''}" for one in digits.to_pylist()],
        **names.of_operators(called),
        start_ns=calls["start_ns"],
        elapse_us=calls["elapse_us"],
    )
    is_known = pc.and_(pc.is_valid(table["step"]), pc.is_valid(table["elapse_us"]))
    return CommunicationTables(table.filter(is_known))


def _header(path: Path) -> list[str]:
    """Return the names of the columns; those of NEEDED are among them."""
    with as_bad_file(), path.open("rb") as stream:
        line = stream.readline()
    try:
        header = as_we_spell([name.strip().strip('"') for name in line.decode("utf-8-sig").split(",")])
    except UnicodeDecodeError as error:
        raise BadFileError(fact("not_utf8", byte=error.start)) from error
    lacking = set(NEEDED) - set(header)
    if lacking:
        raise BadFileError(fact("no_column", columns=tuple(sorted(lacking))))
    return header


def _blocks(
    path: Path, wanted: list[str], header: list[str], skipped: list[int], remark: Remark
) -> Iterator[pa.Table]:
    """Yield the columns as text, without lines that have another number of cells; of a last line without
    its end as `csv_text` says.
    """
    if any(header.count(name) > 1 for name in wanted):
        raise BadFileError(fact("two_columns_of_one_name"))
    cut = _after_last_end(path)
    is_whole = not cut or finished(cut, header, remark) is not None
    options = csv_options(header, wanted, skipped, block_bytes=_BLOCK_BYTES)
    held: pa.Table | None = None
    try:
        # Arrow opens no path that is not UTF-8, and prints a traceback for a line that is not.
        with path.open("rb") as stream:
            for batch in pa_csv.open_csv(codecs.EncodedFile(stream, "utf-8"), **options):
                if held is not None:
                    yield held
                held = pa.Table.from_batches([batch])
        if not is_whole:
            remark(fact("truncated_last_line", byte=path.stat().st_size))
            del skipped[-1:]
        if held is not None:
            yield _without_last_cell(held, header[-1]) if cut and is_whole else held
    except pa.ArrowInvalid as error:
        if "Empty" in str(error):
            return
        raise BadFileError(fact("not_csv", detail=str(error).splitlines()[0][:300])) from error
    except UnicodeDecodeError:
        read_lines(path, unheard)  # raises with the place
        raise


def _without_last_cell(text: pa.Table, column: str) -> pa.Table:
    """Return the rows with the last cell of a column empty, if they have it."""
    if column not in text.column_names:
        return text
    cells = [*text[column].to_pylist()[:-1], ""]
    return schema.with_columns(text, **{column: pa.array(cells, pa.string())})


def _after_last_end(path: Path) -> bytes:
    """Return what a file holds behind the end of its last whole line; empty for most."""
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - _LONGEST_LINE_BYTES))
        tail = stream.read()
    return tail[max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1 :]


def kernels_of_columns(path: Path) -> Kernels:
    """Return what a columns file holds.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "kernels")
    texts = {key: file.names(key) if key == "name" else file.texts(key).dictionary_decode() for key in KEYS}
    figures = {name: file.ints(name) for name in ("n", "ps", "ps_min", "ps_max")}
    rows, waits = file.ints("wait.rows"), file.ints("wait_ps")
    n_kinds = len(figures["n"])
    _require({len(one) for one in (*texts.values(), *figures.values())} == {n_kinds})
    _require(len(rows) == len(waits) and are_places(rows, n_kinds))
    _require(not n_kinds or (figures["n"].min() > 0 and figures["ps_min"].min() >= 0))
    all_waits, is_missing = np.zeros(n_kinds, np.int64), np.ones(n_kinds, bool)
    all_waits[rows], is_missing[rows] = waits, False
    sums = KernelSums()
    if n_kinds:
        sums.add_sums(pa.table({**texts, **figures, "wait_ps": pa.array(all_waits, mask=is_missing)}))
    starts = file.ints("call.start_ns")
    calls = {
        "step": pc.fill_null(file.texts("call.step").dictionary_decode(), ""),
        "name": file.names("call.name"),
        "start_ns": pa.array(starts, mask=starts < 0),
        "elapse_us": pa.array(file.floats("call.us")),
    }
    _require(len(set(map(len, calls.values()))) == 1)
    return Kernels(sums, pa.table(calls))


def _require(is_sound: object) -> None:
    if not is_sound:
        raise damaged("kernels of other lengths")
