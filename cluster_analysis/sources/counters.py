"""Figures of a capture as a whole: memory, input pipeline, FLOPs; each file gives rows of COUNTERS.

| file | metric | label |
| --- | --- | --- |
| memory_record.csv (MB = 2^20 bytes) | memory_peak_allocated_bytes, memory_peak_reserved_bytes | component |
| npu_module_mem.csv | module_peak_reserved_bytes | module |
| operator_memory.csv (KB = 2^10 bytes) | operator_memory_largest_bytes | operator |
| dataset.csv (µs) | input_operation_avg_us, input_operation_count | operation, stage |
| operator_details.csv (µs) | data_loader_us: all that the host spent in it | |
| minddata_pipeline_raw_*.csv | input_queue_usage_share | operation |
| flops_summary_*.json (MFLOP, GFLOP/s, percent) | flops_count, flops_per_s, flops_utilization_share | |
| memory_usage_summary_*.json (GiB) | memory_theoretical_peak_bytes, memory_capacity_bytes | |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out, unheard
from cluster_analysis.sources.measured import tell_no_columns
from cluster_analysis.sources.names import DATA_LOADER
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import Counter
from cluster_run.facts import fact

_KIB, _MIB, _GIB = 2.0**10, 2.0**20, 2.0**30
_MEGA, _GIGA, _PERCENT = 1e6, 1e9, 100.0


def counter_table(rank: int, counters: Iterable[Counter]) -> pa.Table:
    """Return COUNTERS of `(metric, label, value)`; without those whose value is not known."""
    known = [one for one in counters if one[2] is not None]
    if not known:
        return schema.COUNTERS.empty_table()
    return schema.rows(
        schema.COUNTERS,
        rank,
        metric=[metric for metric, _, _ in known],
        label=[label for _, label, _ in known],
        value=[value for _, _, value in known],
    )


def read_memory_record(path: Path, remark: Remark) -> list[Counter]:
    """Return the peaks of memory_record.csv."""
    columns = {
        "Total Allocated(MB)": ("memory_peak_allocated_bytes", _MIB),
        "Total Reserved(MB)": ("memory_peak_reserved_bytes", _MIB),
    }
    return _peaks(path, "Component", columns, remark)


def read_module_memory(path: Path, remark: Remark) -> list[Counter]:
    """Return the peaks of npu_module_mem.csv."""
    columns = {
        "Total Reserved(MB)": ("module_peak_reserved_bytes", _MIB),
        "Total Reserved(KB)": ("module_peak_reserved_bytes", _KIB),
    }
    return _peaks(path, "Component", columns, remark)


def read_operator_memory(path: Path, remark: Remark) -> list[Counter]:
    """Return the largest allocation of each operator in operator_memory.csv."""
    return _peaks(path, "Name", {"Size(KB)": ("operator_memory_largest_bytes", _KIB)}, remark)


def read_dataset(path: Path, remark: Remark) -> list[Counter]:
    """Return how often and how long each operation of the input pipeline ran: dataset.csv."""
    labels, (counts, times) = _labelled(path, ("Operation", "Stage", "Occurrences", "Avg. time (us)"), remark)
    return [
        (metric, label.strip(), value)
        for metric, values in (("input_operation_avg_us", times), ("input_operation_count", counts))
        for label, value in zip(labels, values, strict=True)
    ]


def read_data_loader(path: Path, remark: Remark) -> list[Counter]:
    """Return how long the host was in its data loader, over all steps: operator_details.csv."""
    needed = ("Name", "Host Total Duration(us)")
    text = read_columns(path, needed, remark, needed=needed)
    is_loader = pc.starts_with(text["Name"], DATA_LOADER)
    times, _ = numbers.to_float64(text["Host Total Duration(us)"].filter(is_loader).combine_chunks())
    return [("data_loader_us", "", pc.sum(times).as_py() or 0.0)]


def read_minddata_pipeline(path: Path, remark: Remark) -> list[Counter]:
    """Return how full the queue behind each operation was on average, 0 to 1; the last one has no queue."""
    return _queue_usage(path, ("op_id", "op_type", "output_queue_usage_rate"), 1.0, remark)


def read_minddata_summary(path: Path, remark: Remark) -> list[Counter]:
    """Return that from minddata_pipeline_summary_*.csv, which has percent."""
    return _queue_usage(path, ("op_ids", "op_names", "queue_utilization_pct"), 1 / _PERCENT, remark)


def _queue_usage(path: Path, columns: tuple[str, str, str], factor: float, remark: Remark) -> list[Counter]:
    labels, (shares,) = _labelled(path, columns, remark)
    return [
        ("input_queue_usage_share", label, _scaled(share, factor))
        for label, share in zip(labels, shares, strict=True)
    ]


def _labelled(
    path: Path, columns: Sequence[str], remark: Remark
) -> tuple[list[str], list[list[float | None]]]:
    """Return the texts of the first two columns of each row together, and the numbers of the others."""
    text = read_columns(path, columns, remark, needed=columns)
    found = [numbers.to_float64(text[column]) for column in columns[2:]]
    n_bad = sum(bad for _, bad in found)
    tell_left_out(remark, n_bad, "cell", "no_number")
    first, second = (text[column].to_pylist() for column in columns[:2])
    return [*map("{} {}".format, first, second)], [values.to_pylist() for values, _ in found]


class _Flops(msgspec.Struct):
    count: float | None = msgspec.field(name="FLOPs", default=None)
    per_s: float | None = msgspec.field(name="FLOPS", default=None)
    utilization: float | None = msgspec.field(name="FLOPS_Utilization", default=None)
    cube_count: float | None = msgspec.field(name="cube_FLOPs", default=None)
    vector_count: float | None = msgspec.field(name="vec_FLOPs", default=None)
    cube_per_s: float | None = msgspec.field(name="cube_FLOPS", default=None)
    vector_per_s: float | None = msgspec.field(name="vec_FLOPS", default=None)


class _Memory(msgspec.Struct):
    capacity: float | None = None
    peak_mem: float | None = None


def read_flops(path: Path, _: Remark) -> list[Counter]:
    """Return what flops_summary_{id}.json says of a step; cube and vector units (2.x) are added."""
    one = decode(read_bytes(path), _Flops)
    return [
        ("flops_count", "", _scaled(_sum(one.count, one.cube_count, one.vector_count), _MEGA)),
        ("flops_per_s", "", _scaled(_sum(one.per_s, one.cube_per_s, one.vector_per_s), _GIGA)),
        ("flops_utilization_share", "", _scaled(one.utilization, 1 / _PERCENT)),
    ]


def read_memory_usage(path: Path, _: Remark) -> list[Counter]:
    """Return what memory_usage_summary_{id}.json says: sums of life times, nothing that was measured."""
    one = decode(read_bytes(path), _Memory)
    return [
        ("memory_theoretical_peak_bytes", "", _scaled(one.peak_mem, _GIB)),
        ("memory_capacity_bytes", "", _scaled(one.capacity, _GIB)),
    ]


def _peaks(path: Path, label: str, columns: Mapping[str, tuple[str, float]], remark: Remark) -> list[Counter]:
    """Return the largest value of each label; `columns` says the metric and the unit of each column.

    A metric without any of its columns is remarked.
    """
    text = read_columns(path, (label, *columns), remark, needed=(label,))
    known = {metric for column, (metric, _) in columns.items() if column in text.column_names}
    if not known:
        raise BadFileError(fact("none_of_columns", columns=tuple(columns)))
    tell_no_columns({column for column, (metric, _) in columns.items() if metric not in known}, remark)
    counters: list[Counter] = []
    for column, (metric, unit) in columns.items():
        if column not in text.column_names:
            continue
        values, n_bad = numbers.to_float64(text[column])
        tell_left_out(remark, n_bad, "cell", "no_number_in_column", column=column)
        peaks = pa.table({"label": text[label], "value": values}).group_by("label", use_threads=False)
        found = peaks.aggregate([("value", "max")]).sort_by("label")
        counters += [(metric, row["label"], _scaled(row["value_max"], unit)) for row in found.to_pylist()]
    return counters


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit


#: Moments a component: enough to draw, and the peaks are kept.
N_MOMENTS = 120
_COLUMNS = {
    "allocated_bytes": "Total Allocated(MB)",
    "reserved_bytes": "Total Reserved(MB)",
    "active_bytes": "Total Active(MB)",
}


def read_memory_curve(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return MEMORY of memory_record.csv; None where it has no record. Bad cells are reported elsewhere."""
    needed = ("Component", "Timestamp(us)")
    text = read_columns(path, (*needed, *_COLUMNS.values()), unheard, needed=needed)
    # As ns, because µs since 1970 with three decimals do not fit a float64.
    times, _ = numbers.to_ns(text["Timestamp(us)"].combine_chunks())
    columns: dict[str, pa.Array] = {"component": text["Component"], "time_ns": times}
    for name, column in _COLUMNS.items():
        if column in text.column_names:
            columns[name] = pc.multiply(numbers.to_float64(text[column])[0], _MIB)
        else:
            columns[name] = pa.nulls(text.num_rows, pa.float64())
    return thinned(pa.table(columns), rank)


def thinned(records: pa.Table, rank: int) -> pa.Table | None:
    """Return MEMORY of records with `component`, `time_ns` and the columns of bytes."""
    records = records.filter(pc.is_valid(records["time_ns"]))
    if not records.num_rows:
        return None
    first, last = pc.min(records["time_ns"]).as_py(), pc.max(records["time_ns"]).as_py()
    span = max(1, -(-(last - first + 1) // N_MOMENTS))
    moment = pc.divide(pc.subtract(records["time_ns"], first), span)
    grouped = (
        records.append_column("moment", moment)
        .group_by(["component", "moment"], use_threads=False)
        .aggregate([(name, "max") for name in _COLUMNS])
        .sort_by([("component", "ascending"), ("moment", "ascending")])
    )
    return schema.rows(
        schema.MEMORY,
        rank,
        component=grouped["component"].to_pylist(),
        time_us=pc.divide(pc.cast(pc.multiply(grouped["moment"], span), pa.float64()), numbers.NS_PER_US),
        **{name: grouped[f"{name}_max"] for name in _COLUMNS},
    )
