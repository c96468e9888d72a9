"""The tables of one rank that describe it and decide no verdict: kernels, memory, clocks, host calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import counters
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.counters import read_memory_curve
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.r1.input_pipeline import read_input_pipeline
from cluster_analysis.sources.reading import Candidates, Databases, Reading, of_rank
from cluster_analysis.sources.text.kernel_details_csv import read_kernels
from cluster_analysis.sources.text.metadata_json import read_environment
from cluster_analysis.sources.text.trace_view_json import read_timeline_columns, read_trace_view
from cluster_analysis.tables.schema import Counter
from cluster_run.facts import fact
from cluster_run.layout import unpacked_name

#: A larger timeline takes longer to read than all else that a rank has together.
_MOST_TIMELINE_BYTES = 256_000_000


def read_figures(reading: Reading, databases: Databases) -> dict[str, pa.Table]:
    """Return the tables of `schema.FIGURES` that the rank's files hold, by name, all but APIS."""
    rank = reading.source.rank
    found = {"counters": counters.counter_table(rank, _counters(reading, databases))}

    def read_own_kernels(path: Path, remark: Remark) -> pa.Table | None:
        return reading.once(read_kernels, path, remark).sums.table(rank)

    # The text file that holds each table, which is better than a database; clocks are in none.
    texts: Mapping[str, Candidates[pa.Table]] = {
        "kernels": (("kernel_details", read_own_kernels),),
        "memory": (("memory_record", of_rank(read_memory_curve, rank)),),
        "frequency": (),
        "environment": (("metadata", of_rank(read_environment, rank)),),
    }
    for name, readers in texts.items():
        table = reading.first(*readers, *databases[name])
        if table is not None:
            found[name] = table
    return found


def _counters(reading: Reading, databases: Databases) -> list[Counter]:
    """Return the figures of the capture as a whole; each file adds its own."""
    found = reading.joined(
        ("memory_record", counters.read_memory_record),
        ("npu_module_mem", counters.read_module_memory),
        ("operator_memory", counters.read_operator_memory),
        ("dataset", counters.read_dataset),
        ("operator_details", counters.read_data_loader),
        *databases["counters"],
    )
    found += read_input_pipeline(reading)
    reported = {(metric, label) for metric, label, _ in found}
    return found + [one for one in _of_timeline(reading) if one[:2] not in reported]


def _of_timeline(reading: Reading) -> list[Counter]:
    """Return what the timeline of a capture in text form says of the host."""
    if "trace_view" not in reading.source.files or "profiler_db" in reading.source.files:
        return []
    path = Path(reading.source.files["trace_view"])
    if columns_of(path) is not None:
        return reading.first(("trace_view", read_timeline_columns)) or []
    # Most runs are collected without theirs, so this is a note, and no problem.
    if os.stat(path).st_size > _MOST_TIMELINE_BYTES or unpacked_name(path.name) != path.name:
        ranks = (reading.source.rank,)
        reading.notes.append(fact("timeline_not_read", ranks=ranks, most_bytes=_MOST_TIMELINE_BYTES))
        return []
    return reading.first(("trace_view", read_trace_view)) or []
