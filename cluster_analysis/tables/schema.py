"""The tables that everything in the analysis speaks: column names, types and units.

Times are microseconds in float64 (`_us`), time stamps nanoseconds in int64 (`_ns`, they do not fit a
float64), sizes bytes in float64 (`_bytes`). Ranks are global unless the name says `local`.
A missing value is null, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.tables import columns_measured as declared
from cluster_reduce import form

_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Transports whose sums each operator has, in the spelling of link entries.
TRANSPORTS = form.TRANSPORTS
#: Those of links inside a host, whose sum SDMA is.
OF_HOST = frozenset(form.OF_HOST)
#: Columns of a table that has both of each: bytes, and µs.
TRANSPORT_BYTES = tuple(f"{name.lower()}_bytes" for name in TRANSPORTS)
TRANSPORT_TIMES = tuple(f"{name.lower()}_us" for name in TRANSPORTS)
TRANSPORT_COLUMNS = tuple(
    name for both in zip(TRANSPORT_BYTES, TRANSPORT_TIMES, strict=True) for name in both
)
#: Transport of links that have no column: UB and UBoE stand under SDMA alone, or under a name of their own.
NAMELESS = "SDMA"

#: Parts of STEPS without which a step is not judged: it cannot be called healthy.
JUDGED_STEPS = ("computing_us", "communication_not_overlapped_us", "free_us")
#: What files of step times of every form but r1.x have: r1.x do not say what of communication is overlapped.
NEEDED_STEPS = (*JUDGED_STEPS, "communication_us")
# Tables that a result has, too: their columns are declared where users find them.
STEPS = declared.Steps.schema
OPERATORS = declared.Operators.schema
PACKETS = declared.Packets.schema
ITERATIONS = declared.Iterations.schema
APIS = declared.Apis.schema
COUNTERS = declared.Counters.schema
KERNELS = declared.Kernels.schema
MEMORY = declared.Memory.schema
FREQUENCY = declared.Frequency.schema
ENVIRONMENT = declared.Environment.schema
COMMUNICATION_COSTS = declared.CommunicationCosts.schema
#: Metrics of COUNTERS that network cards count: they explain a slow link.
CARD_COUNTERS = (
    "roce_resent_packets_count",
    "roce_bad_packets_count",
    "roce_congestion_packets_count",
    "nic_errors_count",
    "nic_dropped_count",
    "mac_pause_frames_count",
)
# The reduction makes these; reports read nothing else.
RANKS = declared.Ranks.schema
MATCHED = declared.Matched.schema
RANK_TIMES = declared.RankTimes.schema
LINK_SUMMARY = declared.Links.schema

#: Begin of a `group` that is named after one operator of the graph, because r1.x names no groups: ranks
#: that run the same graph give one operator the same name.
OPERATOR_GROUP_PREFIX = "op:"

#: One row a communication operator, rank and step, as communication.json has it (without totals).
#: `group` is the decimal hash after the `@`; `op_name` the text before it; `op_type` the lower-case
#: operation (`allreduce`, `reducescatter`, `batchsendrecv`, `send`, …); `op_index` its running number
#: in the group, -1 where the name has none. `payload_bytes` is what the caller handed over, by count and
#: type of data (r1.x: what all links of the operator moved); the bytes of the transports are what its links
#: carried for it. Links without an entry of their own (UB and UBoE of A5, recorded under SDMA alone) stand in
#: the columns of HCCS, and their size as payload too.
COLLECTIVES = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("group", _TEXT),
        ("op_name", pa.string()),
        ("op_type", _TEXT),
        ("op_index", pa.int32()),
        ("is_p2p", pa.bool_()),
        ("start_ns", pa.int64()),
        ("elapse_us", pa.float64()),
        ("transit_us", pa.float64()),
        ("wait_us", pa.float64()),
        ("synchronization_us", pa.float64()),
        ("idle_us", pa.float64()),
        *((name, pa.float64()) for name in TRANSPORT_COLUMNS),
        ("payload_bytes", pa.float64()),
    ]
)

#: One row a rank, collective and transport, without link entries: what the rank's own links carried for
#: it, and for how long, all of them added.
SENT = pa.schema(
    [
        ("step", pa.int64()),
        ("rank", pa.int32()),
        ("group", _TEXT),
        ("op_type", _TEXT),
        ("transport", _TEXT),
        ("size_bytes", pa.float64()),
        ("time_us", pa.float64()),
    ]
)

#: One row a rank, step and group: the sums of COLLECTIVES; a column that is null throughout sums to null.
TOTALS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("group", _TEXT),
        *(field for field in COLLECTIVES if pa.types.is_float64(field.type)),
    ]
)

#: When each rank's first communication operator of a step began and its last one ended, by its own clock,
#: and how many have both.
STEP_CALLS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("n_calls", pa.int64()),
    ]
)

#: When each member came to and left the collectives of a group in a step, by its own clock: one of them.
CLOCKS = pa.schema(
    [("group", pa.int32()), ("rank", pa.int32()), ("came_us", pa.float64()), ("left_us", pa.float64())]
)

#: Sums by hosts that send columns, as the columns do not hold the values: a part of TOTALS.
HOST_SUMS = pa.schema(
    [
        TOTALS.field(name)
        for name in ("rank", "step", "group", "transit_us", "wait_us", "synchronization_us", "idle_us")
    ]
)

#: One row an operator in the text of communication.json, in its order: the JSON of `key` is `length` bytes
#: at `offset` of the file. Operators without times are here too; totals are not.
OPERATOR_SPANS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("key", _TEXT),
        ("position", pa.int32()),
        ("offset", pa.int64()),
        ("length", pa.int32()),
    ]
)

#: The variant of links that only name the other end of a message.
PEER_VARIANT = "peer"

#: One row a link entry of communication_matrix.json. `rank` wrote it. `variant` is `top1`, `middle`,
#: `bottom1`…, `total`, or `op` in files with one entry an operator. `src_rank` and `dst_rank` are
#: global and null until the group's members are known. Rows of PEER_VARIANT have neither size nor time.
LINKS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("group", _TEXT),
        ("is_p2p", pa.bool_()),
        ("op_type", _TEXT),
        ("variant", _TEXT),
        ("op_name", pa.string()),
        ("src_local", pa.int32()),
        ("dst_local", pa.int32()),
        ("src_rank", pa.int32()),
        ("dst_rank", pa.int32()),
        ("transport", _TEXT),
        ("size_bytes", pa.float64()),
        ("time_us", pa.float64()),
    ]
)

#: Metric, label and value of a row of COUNTERS; None for a value that is not known.
Counter = tuple[str, str, float | None]


#: Tables that describe ranks and decide no verdict: they are joined over the ranks and written as they are.
FIGURES = {
    "apis": APIS,
    "counters": COUNTERS,
    "kernels": KERNELS,
    "memory": MEMORY,
    "frequency": FREQUENCY,
    "environment": ENVIRONMENT,
    "communication_costs": COMMUNICATION_COSTS,
}


def one_behind_the_other(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables of one schema, each column in one piece."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def rows_of(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Return these columns row by row, with None for null."""
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def with_columns(table: pa.Table, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a table with these columns in the place of those of their names."""
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), values)
    return table


def rows(
    schema: pa.Schema,
    rank: int | npt.NDArray[np.int32],
    /,
    **columns: pa.Array | pa.ChunkedArray | npt.NDArray[Any] | Sequence[Any],
) -> pa.Table:
    """Return the table of `schema` with rows of one rank, or of one each; columns not given are null."""
    n_rows = len(next(iter(columns.values())))
    ranks = np.full(n_rows, rank, np.int32) if isinstance(rank, int) else rank
    given = {"rank": ranks, **columns}
    return pa.table(
        {one.name: given.get(one.name, pa.nulls(n_rows, one.type)) for one in schema}, schema=schema
    )
