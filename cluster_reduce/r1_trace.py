"""step_trace_raw_*.csv of MindSpore r1.x → columns that give back every byte of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cluster_reduce.form import UnfitError, Writer

#: A cell that is spelled in one way only.
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")
START, END = "_start_point", "_end_point"


def kinds_of_columns(names: Sequence[str]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the columns behind the first one: of operators begins, lengths and ends; and all others."""
    known = set(names)
    found: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    for place, name in enumerate(names[1:], start=1):
        kind = 0 if name.endswith(START) else 2 if name.endswith(END) else 1 if name + START in known else 3
        found[kind].append(place)
    return found


def reduce_r1_trace(content: bytes) -> bytes:
    """Return the columns.

    Raises:
        UnfitError: anything in the file is not as usual.
    """
    try:
        header, *lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise UnfitError("not UTF-8") from None
    if not lines or lines.pop() or '"' in header or "\0" in header:
        raise UnfitError("no CSV of whole lines")
    rows = [line.split(",") for line in lines]
    n_columns = header.count(",") + 1
    for row in rows:
        if len(row) != n_columns or not all(map(_WHOLE.fullmatch, row[1:])):
            raise UnfitError("a line of other cells")
    writer = Writer("r1_trace", len(content))
    writer.names("header", header.split(","))
    writer.texts("label", [row[0] for row in rows])
    begins, lengths, ends, others = (
        [int(row[place]) for row in rows for place in places]
        for places in kinds_of_columns(header.split(","))
    )
    writer.ints("begin", begins)
    writer.ints("length", lengths)
    writer.ints("end", ends, ("begin", "length") if len(begins) == len(lengths) == len(ends) else ())
    writer.ints("other", others)
    return writer.content()
