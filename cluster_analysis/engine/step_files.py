"""The large tables of a batch of ranks in one step, in memory or in a file of the scratch directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from cluster_analysis.tables.schema import COLLECTIVES, LINKS

_SUFFIX = ".steps.arrow"
#: Files with more steps than this stay open, up to a number of files: they hold little of each step.
_MANY_STEPS = 64
_MOST_KEPT_OPEN = 128
#: Written at once: Arrow writes each column of each step on its own, a thousand calls into the system.
_SINK_BYTES = 256 * 1024


@dataclass(frozen=True)
class StepTables:
    """The large tables of a batch in one step."""

    collectives: pa.Table
    links: pa.Table

    def load(self) -> StepTables:
        """Return the tables, which are here already."""
        return self


@dataclass(frozen=True)
class StepFiles:
    """These tables in a file: COLLECTIVES of all steps or some of its columns, then LINKS; a record batch a
    step.

    Files are mapped: columns that a task does not look at are never read.
    """

    path: str
    position: int
    n_steps: int
    collectives_end: int

    def load(self) -> StepTables:
        """Return the two tables of this step."""
        path = self.path + _SUFFIX
        # Opening reads where all steps lie: with thousands of them that takes longer than one of them.
        if self.n_steps > _MANY_STEPS:
            readers = _kept_open(path, os.stat(path).st_ino, self.collectives_end)
        else:
            readers = _opened(path, self.collectives_end)
        return StepTables(*(pa.Table.from_batches([one.get_batch(self.position)]) for one in readers))


_Readers = tuple[pa.RecordBatchFileReader, pa.RecordBatchFileReader]


def _opened(path: str, collectives_end: int) -> _Readers:
    mapped = pa.memory_map(path)
    # An Arrow file is read from its end, and places in it count from the begin of the whole one.
    return pa.ipc.open_file(mapped, footer_offset=collectives_end), pa.ipc.open_file(mapped)


@lru_cache(_MOST_KEPT_OPEN)
def _kept_open(path: str, _inode: int, collectives_end: int) -> _Readers:
    return _opened(path, collectives_end)


def let_files_go() -> None:
    """Close what this process kept open: files that were removed take their space until then."""
    _kept_open.cache_clear()


def file_sink(path: str) -> pa.BufferedOutputStream:
    """Return what writes a file in large pieces."""
    return pa.BufferedOutputStream(pa.OSFile(path, "wb"), _SINK_BYTES)


def filed(
    by_step: Mapping[int, StepTables], stem: str, schema: pa.Schema = COLLECTIVES
) -> Mapping[int, StepFiles]:
    """Write the tables of all steps to a file whose path begins with `stem`; `schema`: of COLLECTIVES these.

    One file and not two: where many are made and removed, making one takes as long as reading a rank.
    """
    with file_sink(stem + _SUFFIX) as sink:
        _write(sink, schema, [one.collectives.select(schema.names) for one in by_step.values()])
        end = sink.tell()
        _write(sink, LINKS, [one.links for one in by_step.values()])
    return {step: StepFiles(stem, position, len(by_step), end) for position, step in enumerate(by_step)}


def _write(sink: pa.BufferedOutputStream, schema: pa.Schema, tables: list[pa.Table]) -> None:
    with pa.ipc.new_file(sink, schema) as writer:
        for table in tables:
            # One batch a step, so that the position in the file is that of the step.
            (batch,) = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
            writer.write_batch(batch)
