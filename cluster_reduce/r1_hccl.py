"""hccl_raw_*.csv of MindSpore r1.x → columns: what it says of each step and operator, link by link.

Bandwidths are not taken: they are size over time, or sums of such.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from cluster_reduce.form import UnfitError, Writer
from cluster_reduce.json_walk import Walk

_STEP = re.compile(r"[0-9]{1,18}")
#: The row of means, which the analysis does not read.
_AVERAGE = "-"
_TEXTS = ("step_num", "communication_cost", "wait_cost")
_LINKS, _OPERATORS = "link_info", "communication_operator_cost"
_FIELD_LIMIT = (1 << 31) - 1
_MOST = 1e300


class _Strict(csv.excel):
    strict = True


class _Links:
    def __init__(self) -> None:
        self.ends: list[str] = []
        self.transports: list[str] = []
        self.times: list[float] = []
        self.sizes: list[float] = []

    def add(self, ends: str, transport: str, figures: object) -> None:
        if type(figures) is not list or len(figures) < 2:
            raise UnfitError("a link without time and size")
        self.ends.append(ends)
        self.transports.append(transport)
        self.times.append(_number(figures[0]))
        self.sizes.append(_number(figures[1]))


def reduce_r1_hccl(content: bytes) -> bytes:
    """Return the columns.

    Raises:
        UnfitError: anything in the file is not as usual.
    """
    lines = [line for line in _lines(content) if line["step_num"] != _AVERAGE]
    links = _Links()
    n_operators: list[int] = []
    operators: list[str] = []
    n_links: list[int] = []
    for line in lines:
        if not _STEP.fullmatch(line["step_num"]):
            raise UnfitError("a line without a step")
        found = _object(_cell(line[_OPERATORS]))
        for name, entry in [("", [_cell(line[_LINKS])]), *found.items()]:
            if type(entry) is not list or not entry:
                raise UnfitError("an operator without links")
            operators.append(name)
            n_links.append(_add_links(links, entry[-1]))
        n_operators.append(len(found))
    writer = Writer("r1_hccl", len(content))
    for name in _TEXTS:
        writer.texts(name, [line[name] for line in lines])
    writer.ints("n_operators", n_operators)
    writer.names("operator", operators)
    writer.ints("n_links", n_links)
    writer.texts("ends", links.ends)
    writer.texts("transport", links.transports)
    writer.floats("time_ms", links.times)
    writer.floats("size_kb", links.sizes)
    return writer.content()


def _add_links(links: _Links, by_ends: object) -> int:
    """Add the links of one operator; return how many."""
    n_before = len(links.ends)
    for ends, by_transport in _object(by_ends).items():
        for transport, figures in _object(by_transport).items():
            links.add(ends, transport, figures)
    return len(links.ends) - n_before


def _cell(text: str) -> Any:
    walk = Walk(text.encode())
    found = walk.value()
    walk.end()
    return found


def _object(given: object) -> dict[str, Any]:
    if type(given) is not dict:
        raise UnfitError("not an object")
    return given


def _number(given: Any) -> float:
    if type(given) not in (int, float) or not 0 <= given <= _MOST:
        raise UnfitError("not a usual number")
    return float(given)


def _lines(content: bytes) -> list[dict[str, Any]]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UnfitError("not UTF-8") from None
    if not text.endswith("\n"):
        raise UnfitError("a last line without its end")
    csv.field_size_limit(_FIELD_LIMIT)
    try:
        lines = list(csv.DictReader(io.StringIO(text), dialect=_Strict))
    except csv.Error:
        raise UnfitError("no CSV") from None
    wanted = {*_TEXTS, _LINKS, _OPERATORS}
    for line in lines:
        if set(line) != wanted or None in line.values():
            raise UnfitError("a line of other cells")
    return lines
