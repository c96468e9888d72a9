"""CSV files by column name: every cell arrives as text, and a damaged line costs that line only.

A last line without its end counts where it has all its cells: each of them but the last was ended by a comma.
The last one may be cut off, and so may lines after it: it is read as if it were empty, and that is reported.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from cluster_analysis.sources.errors import BadFileError, FileOfRank, NotTogetherError, Remark, tell_left_out
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_run.facts import fact

#: Between a name and the number of its repetition in the header.
REPEAT_MARK = "#"
_OTHER_SEPARATORS = re.compile(rb"[;\t|]")
_LINE_END = re.compile(rb"[\r\n]|\Z")
#: In files up to this size rows that are too long are looked at: that takes much memory.
_RETRIED_BYTES = 8 * 1024 * 1024


def read_columns(
    path: Path, wanted: Iterable[str], remark: Remark, *, needed: Iterable[str] = ()
) -> pa.Table:
    """Return the wanted columns that the file has, as text, named as wanted; compared case-blind.

    A line with another number of cells, and a last line that was cut off, are left out and remarked.

    Raises:
        BadFileError: missing, empty, not UTF-8, without any wanted column, without one that is needed, or
            with two columns of one wanted name.
    """
    return read_files([(str(path), 0)], wanted, needed, remark)[0]


def read_files(
    files: Sequence[FileOfRank], wanted: Iterable[str], needed: Iterable[str], remark: Remark
) -> tuple[pa.Table, npt.NDArray[np.int32]]:
    """Return these columns of the files of one or more ranks, and the rank of each row (N,).

    Raises:
        BadFileError: see `read_columns`.
        NotTogetherError: several files have not one header, or one has lines without a row.
    """
    contents = [read_lines(Path(path), remark) for path, _ in files]
    first = _first_line_of(contents[0])
    header = _header(first)
    by_folded = {_folded(name): name for name in header}
    found = {name: by_folded[_folded(name)] for name in wanted if _folded(name) in by_folded}
    if not found and len(header) == 1 and _OTHER_SEPARATORS.search(first):
        raise BadFileError(fact("not_by_commas"))
    if not found:
        raise BadFileError(fact("no_expected_column", header=",".join(header)[:200]))
    times = Counter(_folded(name.partition(REPEAT_MARK)[0]) for name in header)
    if any(times[_folded(name)] > 1 for name in found):
        raise BadFileError(fact("two_columns_of_one_name"))
    columns = list(dict.fromkeys(found.values()))
    if len(files) == 1:
        text = _parse(contents[0], header, columns, remark)
        n_rows = [text.num_rows]
    else:
        if any(_first_line_of(content) != first for content in contents):
            raise NotTogetherError
        bodies = [content[len(first) :].partition(b"\n")[2] for content in contents]
        text = _parse(b"\n".join([first, b"".join(bodies)]), header, columns, remark)
        n_rows = [body.count(b"\n") for body in bodies]
        if text.num_rows != sum(n_rows) or not all(n_rows):
            raise NotTogetherError
    missing = set(needed) - set(found)
    if missing:
        raise BadFileError(fact("no_column", columns=tuple(sorted(missing))))
    named = text.select(list(found.values())).rename_columns(list(found))
    return named, np.repeat(np.array([rank for _, rank in files], np.int32), n_rows)


def read_all_columns(path: Path, remark: Remark, *, keep_last: bool = False) -> pa.Table:
    """Return all columns as text. The second column of one name is called `name#2`, and so on.

    With `keep_last` a last line without its end is kept, for a caller that knows whether it is whole.

    Raises:
        BadFileError: missing, empty or not UTF-8.
    """
    content = read_lines(path, remark, keep_last=keep_last)
    header = _header(_first_line_of(content))
    return _parse(content, header, list(header), remark)


def _parse(content: bytes, header: tuple[str, ...], columns: list[str], remark: Remark) -> pa.Table:
    table, lengths = _table(content, header, columns)
    if len(content) <= _RETRIED_BYTES and any(length > len(header) for length in lengths):
        # Some may end in commas only.
        lines = content.split(b"\n")
        whole = b"\n".join([lines[0], *(_without_empty_ends(line, len(header)) for line in lines[1:])])
        table, lengths = _table(whole, header, columns)
    tell_left_out(remark, len(lengths), "line", "other_number_of_cells")
    return table.combine_chunks()


def _table(content: bytes, header: tuple[str, ...], columns: list[str]) -> tuple[pa.Table, list[int]]:
    """Return the lines that have as many cells as the header, and how many cells each other one has."""
    lengths: list[int] = []
    options = csv_options(header, columns, lengths, has_quotes=b'"' in content)
    try:
        table = pa_csv.read_csv(pa.BufferReader(content), **options)
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
        if "Empty" not in str(error):
            raise BadFileError(fact("not_csv", detail=_first_line(error))) from error
        table = pa.table({name: pa.array([], pa.string()) for name in columns})
    return table, lengths


def csv_options(
    header: Sequence[str],
    columns: list[str],
    lengths: list[int],
    *,
    has_quotes: bool = False,
    block_bytes: int | None = None,
) -> dict[str, Any]:
    """Return how Arrow reads columns as text; `lengths` gathers how many cells each skipped line has."""

    def skip(row: pa_csv.InvalidRow) -> str:
        lengths.append(row.actual_columns)
        return "skip"

    return {
        "read_options": pa_csv.ReadOptions(
            use_threads=False, column_names=list(header), skip_rows=1, block_size=block_bytes
        ),
        "parse_options": pa_csv.ParseOptions(invalid_row_handler=skip, newlines_in_values=has_quotes),
        "convert_options": pa_csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in columns},
            strings_can_be_null=False,
        ),
    }


def _without_empty_ends(line: bytes, length: int) -> bytes:
    """Return a line without the empty cells that commas at its end make; as it is where it stays longer."""
    n_cells = len(next(csv.reader([line.decode()]))) if b'"' in line else line.count(b",") + 1
    cut = line
    for _ in range(n_cells - length):
        cut, _, last = cut.rpartition(b",")
        if last.strip():
            return line
    return cut


def read_lines(path: Path, remark: Remark, *, keep_last: bool = False) -> bytes:
    """Return a file whose last line ends, or as it is where the last line is to be kept.

    The CSV reader would lose an error about text that is not UTF-8, so that is looked for here.

    Args:
        path: the file.
        remark: called with what is left out of the last line.
        keep_last: leave a last line without its end as it is.

    Raises:
        BadFileError: missing, empty, not UTF-8, or without any whole line.
    """
    content = read_bytes(path)
    try:
        if not content.isascii():
            content.decode()
    except UnicodeDecodeError as error:
        raise BadFileError(fact("not_utf8", byte=error.start)) from error
    if content.endswith((b"\n", b"\r")):
        return content
    end = content.rfind(b"\n") + 1
    if end == 0:
        raise BadFileError(fact("truncated_first_line", byte=len(content)))
    if keep_last:
        return content
    line = finished(content[end:], _header(_first_line_of(content)), remark)
    if line is None:
        remark(fact("truncated_last_line", byte=len(content)))
    return content[:end] + (line or b"")


def finished(line: bytes, header: Sequence[str], remark: Remark) -> bytes | None:
    """Return a last line that has no end with one, its last cell empty; None where it lacks cells."""
    try:
        (cells,) = csv.reader(io.StringIO(line.decode(), newline=""))
    except (csv.Error, ValueError):
        return None
    if len(cells) < len(header):
        return None
    remark(fact("last_cell_in_doubt", column=header[-1]))
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([*cells[:-1], ""])
    return written.getvalue().encode()


def _first_line_of(content: bytes) -> bytes:
    return content[: next(_LINE_END.finditer(content)).start()]


def _header(line: bytes) -> tuple[str, ...]:
    cells = [name.strip().strip('"') for name in line.decode().split(",")]
    seen: dict[str, int] = {}
    header = []
    for name in cells:
        seen[name] = seen.get(name, 0) + 1
        header.append(name if seen[name] == 1 else f"{name}{REPEAT_MARK}{seen[name]}")
    return tuple(header)


def _folded(name: str) -> str:
    return name.replace(" ", "").replace("_", "").casefold()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300]
