"""cluster_analysis.db: what the four text files hold, as the tables that Insight queries.

Steps are `13` in the step table and `step13` in the others, as Insight compares them; `step`, `index` and
names are TEXT, or Insight finds no rank at all. Ratios of single operators are computed, where other
tools write 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.insight.group_file import GroupRow
from cluster_analysis.insight.naming import NO_GROUP, TOTAL, rank_set, safe, step_key
from cluster_analysis.insight.step_table import StepRow
from cluster_analysis.insight.totals import TIMES, TRANSPORTS, ratio, ratios
from cluster_analysis.sources.db.cells import each
from cluster_analysis.sources.numbers import BYTES_PER_MB, NS_PER_US, US_PER_MS
from cluster_analysis.sources.text.step_trace_csv import DATABASE_COLUMNS
from cluster_analysis.tables.schema import TRANSPORT_COLUMNS, rows_of

_TABLES = f"""
CREATE TABLE ClusterStepTraceTime (step TEXT, type TEXT, "index" TEXT,
 {", ".join(f"{name} NUMERIC" for name in DATABASE_COLUMNS.values())},
 dp_index INTEGER, pp_index INTEGER, tp_index INTEGER);
CREATE TABLE ClusterCommunicationTime (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
 start_timestamp REAL, elapsed_time REAL, transit_time REAL, wait_time REAL, synchronization_time REAL,
 idle_time REAL, synchronization_time_ratio REAL, wait_time_ratio REAL);
CREATE TABLE ClusterCommunicationBandwidth (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
 band_type TEXT, transit_size REAL, transit_time REAL, bandwidth REAL, large_packet_ratio REAL,
 package_size REAL, count INTEGER, total_duration REAL);
CREATE TABLE ClusterCommunicationMatrix (step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank REAL,
 dst_rank REAL, transport_type TEXT, op_name TEXT, transit_size REAL, transit_time REAL, bandwidth REAL);
CREATE TABLE CommunicationGroupMapping (type TEXT, rank_set TEXT, group_name TEXT, group_id TEXT,
 pg_name TEXT);
CREATE TABLE ClusterBaseInfo (key TEXT, value TEXT);
CREATE TABLE HostInfo (hostUid TEXT, hostName TEXT);
CREATE TABLE RankDeviceMap (rankId INTEGER, deviceId INTEGER, hostUid TEXT, profilePath TEXT);
"""


class InsightDatabase:
    """cluster_analysis.db while it is written; use as a context, everything is there when it ends well."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        # It grows in a directory of its own and is thrown away after a crash: no journal, no waiting.
        self._connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_TABLES}")

    def __enter__(self) -> InsightDatabase:
        self._connection.execute("BEGIN")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        self._connection.close()

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Write ClusterStepTraceTime. Indices that are not known are null, not 0."""
        self._insert(
            "ClusterStepTraceTime",
            (
                (str(row.step), row.kind, row.index, *row.times, *(row.indices or (None, None, None)))
                for row in rows
            ),
        )

    def add_groups(self, rows: Sequence[GroupRow]) -> None:
        """Write CommunicationGroupMapping."""
        self._insert(
            "CommunicationGroupMapping",
            ((row.kind, rank_set(row.ranks, ","), row.group, row.group_id, row.pg_name) for row in rows),
        )

    def add_places(
        self, hosts: Iterable[tuple[str, str]], ranks: Iterable[tuple[int, int | None, str]]
    ) -> None:
        """Write HostInfo as `(id, name)` and RankDeviceMap as `(rank, device, host id)`."""
        self._insert("HostInfo", hosts)
        self._insert("RankDeviceMap", ((*row, "") for row in ranks))

    def add_operators(self, collectives: pa.Table) -> None:
        """Write rows of COLLECTIVES to ClusterCommunicationTime."""
        self._insert("ClusterCommunicationTime", _time_rows(collectives))

    def add_bandwidths(self, rank: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows of `bandwidth_rows` to ClusterCommunicationBandwidth, packet sizes kept."""
        steps = {step: step_key(step) for step in {row[0] for row in rows}}
        names = {name: safe(name) for name in {row[1] for row in rows}}
        self._insert(
            "ClusterCommunicationBandwidth",
            ((steps[step], rank, names[name], group or NO_GROUP, *rest) for step, name, group, *rest in rows),
        )

    def add_summed_bandwidths(self, collectives: pa.Table) -> None:
        """Write one row an operator and transport, where packet sizes were not kept apart."""
        self._insert("ClusterCommunicationBandwidth", _band_rows(collectives))

    def add_totals(self, totals: pa.Table, packets: pa.Table) -> None:
        """Write `Total Op Info` of each rank, step and group: TOTALS, and PACKETS for the packet sizes."""
        named = totals.append_column("op_name", pa.array([TOTAL] * totals.num_rows, pa.string()))
        named = named.append_column("start_ns", pa.nulls(totals.num_rows, pa.int64()))
        self._insert("ClusterCommunicationTime", _time_rows(named))
        self._insert("ClusterCommunicationBandwidth", _total_band_rows(totals, packets))

    def add_matrix(self, matrix: pa.Table) -> None:
        """Write MATRIX to ClusterCommunicationMatrix."""
        columns = [
            _each(matrix["step"], step_key),
            matrix["label"].to_pylist(),
            _each(matrix["group"], lambda group: group or NO_GROUP),
            *(_numbers(matrix[name]) for name in ("src_rank", "dst_rank")),
            *(matrix[name].to_pylist() for name in ("transport", "op_name")),
            *(_numbers(matrix[name]) for name in ("size_mb", "time_ms", "bandwidth_gbps")),
        ]
        self._insert("ClusterCommunicationMatrix", zip(*columns, strict=True))

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        n_columns = len(self._connection.execute(f"SELECT * FROM {table} LIMIT 0").description)  # noqa: S608
        marks = ",".join("?" * n_columns)
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our names


def _time_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    times_ms = [pc.divide(table[f"{name}_us"], US_PER_MS) for name in TIMES]
    _, transit, wait, synchronization, _ = times_ms
    starts_us = [None if one is None else one / NS_PER_US for one in _numbers(table["start_ns"])]
    shares = [_shares(one, transit) for one in (synchronization, wait)]
    return zip(*_heads(table), starts_us, *map(_numbers, times_ms), *shares, strict=True)


def _heads(table: pa.Table) -> list[list[Any]]:
    """Return the columns that all rows of operators begin with."""
    return [
        _each(table["step"], step_key),
        _numbers(table["rank"]),
        _each(table["op_name"], lambda name: safe(name or "")),
        _each(table["group"], lambda group: group or NO_GROUP),
    ]


def _each(column: pa.ChunkedArray, make: Callable[[Any], str]) -> list[str]:
    """Return what is made of each value; of those that are alike once."""
    coded = column.combine_chunks()
    return each(coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode(), make)


def _numbers(column: pa.ChunkedArray) -> list[float | None]:
    found: list[float | None] = column.to_pylist() if column.null_count else column.to_numpy().tolist()
    return found


def _shares(part: pa.ChunkedArray, transit: pa.ChunkedArray) -> list[float | None]:
    """Return the share of a time in itself and the transit, null where both are.

    Of operators that came as columns only the elapsed time is known.
    """
    parts, others = (one.fill_null(0.0).to_numpy() for one in (part, transit))
    found = ratios(parts, parts + others)
    is_known = pc.or_(part.is_valid(), transit.is_valid())
    return _numbers(pc.if_else(is_known, pa.array(found), None))


def _bands(values: Sequence[float | None]) -> Iterator[tuple[str, float, float]]:
    """Yield transport, MB and ms of the transports that were used; SDMA is what the copy engines move."""
    sums = {
        name: ((values[2 * at] or 0.0) / BYTES_PER_MB, (values[2 * at + 1] or 0.0) / US_PER_MS)
        for at, name in enumerate(TRANSPORTS)
    }
    sizes, times = zip(sums["hccs"], sums["pcie"], sums["sio"], strict=True)
    sums["sdma"] = sum(sizes), sum(times)
    for name, (size, time) in sums.items():
        if size or time:
            yield name.upper(), size, time


def _band_rows(collectives: pa.Table) -> Iterator[tuple[Any, ...]]:
    values = zip(*(_numbers(collectives[name]) for name in TRANSPORT_COLUMNS), strict=True)
    for *head, own in zip(*_heads(collectives), values, strict=True):
        for transport, size, time in _bands(own):
            yield (*head, transport, size, time, ratio(size, time), 0.0, 0.0, 0, 0.0)


def _total_band_rows(totals: pa.Table, packets: pa.Table) -> Iterator[tuple[Any, ...]]:
    keys = ("rank", "step", "group", "transport", "packet_bytes", "n_packets", "total_us")
    sizes: dict[tuple[int, int, str, str], list[tuple[float, int, float]]] = {}
    for rank, step, group, transport, packet, count, total in rows_of(packets, *keys):
        entry = ((packet or 0.0) / BYTES_PER_MB, count or 0, (total or 0.0) / US_PER_MS)
        sizes.setdefault((rank, step, group or "", transport or ""), []).append(entry)
    for step, rank, group, *values in rows_of(totals, "step", "rank", "group", *TRANSPORT_COLUMNS):
        for transport, size, time in _bands(values):
            head = (step_key(step), rank, TOTAL, group or NO_GROUP, transport, size, time, ratio(size, time))
            for entry in sizes.get((rank, step, group or "", transport), [(0.0, 0, 0.0)]):
                yield (*head, 0.0, *entry)
