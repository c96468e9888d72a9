"""communication_matrix.json → columns: one row a link. This is the reference reader: see `communication`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from cluster_reduce.form import Writer
from cluster_reduce.levels import Level, Levels, no_more_than_usual

#: No job has ranks of more digits: a damaged one must not become a group of that size.
_ENDS = re.compile(r"\s*([0-9]{1,6})\s*-\s*([0-9]{1,6})\s*")
_FIGURES = {"size_mb": "Transit Size(MB)", "time_ms": "Transit Time(ms)"}
_NUMBERS = (int, float)


def reduce_matrix(content: bytes) -> bytes:
    """Return the columns.

    Raises:
        UnfitError: there is something to report, so that the file travels as it is.
    """
    writer = Writer("matrix", len(content))
    writer.take(link_columns(content, no_more_than_usual))
    return writer.content()


def link_columns(content: bytes, tell: Callable[..., None]) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """Give the columns of a file's links, as `Writer.take` takes them.

    Args:
        content: the file.
        tell: takes facts about it where the rest counts: see `Levels`.

    Raises:
        DamagedError: nothing of it can be used.
    """
    rows = _Rows()
    for level in Levels(content, tell):
        n_bad = rows.add(level)
        if n_bad:
            values = {"part": "link", "reason": "not_source_destination", "step": level.step}
            tell(("left_out", {"n_parts": n_bad, **values}))
    yield from rows.columns()


class _Rows:
    def __init__(self) -> None:
        self._levels: list[tuple[int, bool, int]] = []
        self._keys: list[str] = []
        self._ends: list[tuple[int, int]] = []
        self._transports: list[str | None] = []
        self._operators: list[str] = []
        self._figures: dict[str, list[float | None]] = {name: [] for name in _FIGURES}

    def add(self, level: Level) -> int:
        """Take the links of one level of one step; return how many do not name two ends."""
        n_before, n_bad = len(self._keys), 0
        for key, (pairs, _, _) in level.operators.items():
            for name, link in pairs.items():
                if type(link) is not dict:
                    raise level.wrong(f"{type(link).__name__} in place of a link, in {key!r}")
                ends = _parsed(name)
                if ends is None:
                    n_bad += 1
                    continue
                self._keys.append(key)
                self._ends.append(ends)
                self._transports.append(_text(level, link.get("Transport Type")))
                # PyTorch and MindSpore spell it in two ways.
                names = [_text(level, link.get(one)) for one in ("Op Name", "op_name")]
                self._operators.append(names[0] or names[1] or "")
                for column, spelling in _FIGURES.items():
                    self._figures[column].append(_number(level, link.get(spelling)))
        self._levels.append((level.step, level.is_p2p, len(self._keys) - n_before))
        return n_bad

    def columns(self) -> Iterator[tuple[str, str, Sequence[Any]]]:
        """Give the columns."""
        yield "ints", "step", [step for step, _, _ in self._levels]
        yield "ints", "is_p2p", [int(is_p2p) for _, is_p2p, _ in self._levels]
        yield "ints", "n_links", [n_links for _, _, n_links in self._levels]
        yield "names", "key", self._keys
        yield "ints", "src_local", [source for source, _ in self._ends]
        yield "ints", "dst_local", [destination for _, destination in self._ends]
        yield "texts", "transport", self._transports
        yield "names", "op_name", self._operators
        for column, values in self._figures.items():
            yield "floats", column, values


@lru_cache(maxsize=1 << 16)
def _parsed(name: str) -> tuple[int, int] | None:
    match = _ENDS.fullmatch(name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _text(level: Level, given: Any) -> str | None:
    if given is not None and type(given) is not str:
        raise level.wrong(f"{type(given).__name__} in place of a text")
    return given


def _number(level: Level, given: Any) -> float | None:
    if given is not None and type(given) not in _NUMBERS:
        raise level.wrong(f"{type(given).__name__} in place of a number")
    try:
        return None if given is None else float(given)
    except OverflowError:
        raise level.wrong("a number beyond float64") from None
