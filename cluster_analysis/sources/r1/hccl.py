"""hccl_raw_{id}.csv of MindSpore r1.x to 2.3: links and costs of communication operators.

Columns: step_num, communication_cost, wait_cost, link_info[, communication_operator_cost]; the last two
are JSON, or a Python literal where the writer forgot to encode it. Per operator:

    {"stream_41_0_AllReduce-op4582": ["1", communication, wait, {"1-0": {"SDMA": [ms, KB, KB/s]}}]}

Bandwidths above operator level are sums of bandwidths, so only time (ms) and size (1 KB = 1000 B) are
read: the bandwidth is their ratio. Ranks of links are local to an unnamed group. The `-` row is a mean
(old writer) or a copy of the last step (2.x), and is not read.

Costs of a step are what the r1.x rank page showed: the file's own sums, in ms, over operators that overlap,
which say nothing of a share of the step. (MindSpore 2.0 and later wrote µs there without another header; its
link times stayed ms, so that a stated cost far above the sum of link times shows it.) SDMA and RDMA are
summed over links. Source: MindSpore's profiling tutorial.
"""

from __future__ import annotations

import ast
import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.sources.r1.step_trace import AVERAGE_ROW, graph_groups
from cluster_analysis.sources.text.csv_text import read_lines
from cluster_analysis.tables import schema
from cluster_reduce.levels import parse_step
from cluster_run.facts import fact
from cluster_run.files import json_of

_FIELD_LIMIT = 2**31 - 1
_OPERATOR_COLUMN, _LINK_COLUMN = "communication_operator_cost", "link_info"
#: Communication is the time on links (of the main plane): it cannot be this many times as long as all.
_OTHER_UNIT = 50.0


def read_r1_hccl(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the links of the operators (LINKS, variant `op`) of one file."""
    rows: list[tuple[int, str, str, str, float, float]] = []
    n_bad = 0
    for line in _lines_of(path, remark):
        step = parse_step(line.get("step_num") or "")
        if line.get("step_num", "").strip() == AVERAGE_ROW:
            continue
        cost = _literal(line.get(_OPERATOR_COLUMN))
        if _OPERATOR_COLUMN not in line:
            # The earliest writer: links of all operators together, whose sums are sound.
            cost = {"": [_literal(line.get(_LINK_COLUMN))]}
        if step is None or not isinstance(cost, dict):
            n_bad += 1
            continue
        for operator, entry in cost.items():
            if not isinstance(entry, list) or not entry or not isinstance(entry[-1], dict):
                n_bad += 1
                continue
            rows.extend((step, operator, *link) for link in _links_of(entry[-1]))
    tell_left_out(remark, n_bad, "entry", "not_readable")
    return _table(rows, rank)


def _lines_of(path: Path, remark: Remark) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file by column, of each step the first: of another one its links would count twice.

    Raises:
        BadFileError: it has another header, or is no CSV.
    """
    content = read_lines(path, remark)
    previous = csv.field_size_limit(_FIELD_LIMIT)
    try:
        reader = csv.DictReader(io.StringIO(content.decode()), strict=True)
        if not {"step_num", _LINK_COLUMN} <= set(reader.fieldnames or ()):
            raise BadFileError(fact("header_not_hccl"))
        n_rows: Counter[str] = Counter()
        for line in reader:
            step = (line.get("step_num") or "").strip()
            n_rows[step] += 1
            if n_rows[step] == 1:
                yield line
        tell_left_out(remark, sum(n_rows.values()) - len(n_rows), "row", "step_repeated")
    except csv.Error as error:
        raise BadFileError(fact("not_csv", detail=str(error))) from error
    finally:
        csv.field_size_limit(previous)


def _literal(text: str | None) -> Any:
    """Return a cell of JSON, or of a Python literal; None where it is neither."""
    if not text:
        return None
    try:
        return json_of(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _links_of(link_info: dict[str, Any]) -> Iterator[tuple[str, str, float, float]]:
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
    ends = [row[2].partition("-") for row in rows]
    return schema.rows(
        schema.LINKS,
        rank,
        step=[row[0] for row in rows],
        group=groups,
        **names.columns(op_names),
        variant=[OPERATOR_VARIANT] * len(rows),
        src_local=[numbers.local_rank(source) for source, _, _ in ends],
        dst_local=[numbers.local_rank(destination) for _, _, destination in ends],
        transport=[row[3] for row in rows],
        size_bytes=[row[5] * numbers.BYTES_PER_KB for row in rows],
        time_us=[row[4] * numbers.US_PER_MS for row in rows],
    )


def read_r1_costs(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return COMMUNICATION_COSTS, a row a step; None where the file has no step."""
    rows = []
    for line in _lines_of(path, remark):
        step = parse_step(line.get("step_num") or "")
        links = _literal(line.get(_LINK_COLUMN))
        if step is None or (line.get("step_num") or "").strip() == AVERAGE_ROW or not isinstance(links, dict):
            continue
        row: dict[str, Any] = {"rank": rank, "step": step}
        for _, transport, time_ms, size_kb in _links_of(links):
            for name, value in (
                ("us", time_ms * numbers.US_PER_MS),
                ("bytes", size_kb * numbers.BYTES_PER_KB),
            ):
                key = f"{transport.lower()}_{name}"
                row[key] = row.get(key, 0.0) + value
        moved_us = row.get("sdma_us", 0.0) + row.get("rdma_us", 0.0)
        costs = [_number(line.get(f"{name}_cost")) for name in ("communication", "wait")]
        is_us = (
            costs[0] is not None and moved_us > 0 and costs[0] > _OTHER_UNIT * moved_us / numbers.US_PER_MS
        )
        factor = 1.0 if is_us else numbers.US_PER_MS
        row["communication_us"], row["wait_us"] = (None if cost is None else cost * factor for cost in costs)
        rows.append({name: row.get(name) for name in schema.COMMUNICATION_COSTS.names})
    return pa.Table.from_pylist(rows, schema=schema.COMMUNICATION_COSTS) if rows else None


def _number(text: str | None) -> float | None:
    values, n_bad = numbers.to_float64(pa.array([text], pa.string()))
    return None if n_bad else values[0].as_py()
