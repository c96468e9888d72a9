"""hccl_raw_{id}.csv of MindSpore r1.x to 2.3: links and costs of communication operators.

Columns: step_num, communication_cost, wait_cost, link_info[, communication_operator_cost]; the last two
are JSON, or a Python literal where the writer forgot to encode it. Per operator:

    {"stream_41_0_AllReduce-op4582": ["1", communication, wait, {"1-0": {"SDMA": [ms, KB, KB/s]}}]}

Bandwidths above operator level are sums of bandwidths, so only time (ms) and size (1 KB = 1000 B) are
read: the bandwidth is their ratio. Ranks of links are local to an unnamed group. The `-` row is a mean
(old writer) or a copy of the last step (2.x), and is not read.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.sources.r1.step_trace import AVERAGE_ROW, graph_groups
from cluster_analysis.sources.text.csv_text import read_lines
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_FIELD_LIMIT = 2**31 - 1
_OPERATOR_COLUMN, LINK_COLUMN = "communication_operator_cost", "link_info"


def read_r1_hccl(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the links of the operators (LINKS, variant `op`) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    rows: list[tuple[int, str, str, str, float, float]] = []
    n_bad = 0
    for line in lines_of(path, remark):
        step = numbers.parse_step(line.get("step_num") or "")
        if line.get("step_num", "").strip() == AVERAGE_ROW:
            continue
        cost = literal(line.get(_OPERATOR_COLUMN))
        if _OPERATOR_COLUMN not in line:
            # The earliest writer: links of all operators together, whose sums are sound.
            cost = {"": [literal(line.get(LINK_COLUMN))]}
        if step is None or not isinstance(cost, dict):
            n_bad += 1
            continue
        for operator, entry in cost.items():
            if not isinstance(entry, list) or not entry or not isinstance(entry[-1], dict):
                n_bad += 1
                continue
            rows.extend((step, operator, *link) for link in links_of(entry[-1]))
    if n_bad:
        remark(left_out(n_bad, "entry", "not_readable"))
    return _table(rows, rank)


def lines_of(path: Path, remark: Remark) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file by column.

    Raises:
        BadFileError: it has another header, or is no CSV.
    """
    content = read_lines(path, remark)
    previous = csv.field_size_limit(_FIELD_LIMIT)
    try:
        reader = csv.DictReader(io.StringIO(content.decode()), strict=True)
        if not {"step_num", LINK_COLUMN} <= set(reader.fieldnames or ()):
            raise BadFileError(fact("header_not_hccl"))
        yield from reader
    except csv.Error as error:
        raise BadFileError(fact("not_csv", detail=str(error))) from error
    finally:
        csv.field_size_limit(previous)


def literal(text: str | None) -> Any:
    """Return a cell of JSON, or of a Python literal; None where it is neither."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def links_of(link_info: dict[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Yield `(ends, transport, ms, KB)` of one operator; a local operator has none."""
    for ends, by_transport in link_info.items():
        if not isinstance(by_transport, dict):
            continue
        for transport, values in by_transport.items():
            if isinstance(values, list) and len(values) >= 2 and all(_finite(value) for value in values[:2]):
                yield ends, transport, float(values[0]), float(values[1])


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _table(rows: list[tuple[int, str, str, str, float, float]], rank: int) -> pa.Table:
    groups, op_names = graph_groups(pa.array([row[1] for row in rows], pa.string()))
    op_types = names.operations(op_names)
    ends = [row[2].partition("-") for row in rows]
    return schema.rows(
        schema.LINKS,
        rank,
        step=[row[0] for row in rows],
        group=groups,
        is_p2p=names.point_to_point(op_types),
        op_type=op_types,
        variant=[OPERATOR_VARIANT] * len(rows),
        op_name=op_names,
        src_local=[numbers.local_rank(source) for source, _, _ in ends],
        dst_local=[numbers.local_rank(destination) for _, _, destination in ends],
        transport=[row[3] for row in rows],
        size_bytes=[row[5] * numbers.BYTES_PER_KB for row in rows],
        time_us=[row[4] * numbers.US_PER_MS for row in rows],
    )
