"""The tables that everything in the analysis speaks: column names, types and units.

Times are microseconds in float64 (`_us`), time stamps nanoseconds in int64 (`_ns`, they do not fit a
float64), sizes bytes in float64 (`_bytes`). Ranks are global unless the name says `local`.
A missing value is null, never 0.
"""

from __future__ import annotations

import pyarrow as pa

_TEXT = pa.dictionary(pa.int32(), pa.string())

#: One row a rank and step, as step_trace_time.csv has it.
STEPS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("computing_us", pa.float64()),
        ("communication_not_overlapped_us", pa.float64()),
        ("overlapped_us", pa.float64()),
        ("communication_us", pa.float64()),
        ("free_us", pa.float64()),
        ("stage_us", pa.float64()),
        ("bubble_us", pa.float64()),
        ("communication_not_overlapped_exclude_receive_us", pa.float64()),
        ("preparing_us", pa.float64()),
    ]
)

#: Begin of a `group` that is named after one operator of the graph, because r1.x names no groups: ranks
#: that run the same graph give one operator the same name.
OPERATOR_GROUP_PREFIX = "op:"

#: One row a communication operator, rank and step, as communication.json has it (without totals).
#: `group` is the decimal hash after the `@`; `op_name` the text before it; `op_type` the lower-case
#: operation (`allreduce`, `reducescatter`, `batchsendrecv`, `send`, …); `op_index` its running number
#: in the group, -1 where the name has none. `payload_bytes` is what the caller handed over, by count and
#: type of data; the bytes of the transports are what its links carried for it. Links without an entry of
#: their own (UB and UBoE of A5, recorded under SDMA alone) stand in the columns of HCCS, and their size as
#: payload too.
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
        ("hccs_bytes", pa.float64()),
        ("hccs_us", pa.float64()),
        ("rdma_bytes", pa.float64()),
        ("rdma_us", pa.float64()),
        ("pcie_bytes", pa.float64()),
        ("pcie_us", pa.float64()),
        ("sio_bytes", pa.float64()),
        ("sio_us", pa.float64()),
        ("payload_bytes", pa.float64()),
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

#: When each rank's first communication operator of a step began, by the rank's own clock.
FIRST_CALLS = pa.schema([("rank", pa.int32()), ("step", pa.int64()), ("start_ns", pa.int64())])

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

#: The variant of links that only say whom a message is for or from.
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

#: One row a rank and kind of kernel, as op_statistic.csv has it, over all its steps.
OPERATORS = pa.schema(
    [
        ("rank", pa.int32()),
        ("op_type", _TEXT),
        ("core_type", _TEXT),
        ("n_calls", pa.int64()),
        ("total_us", pa.float64()),
        ("min_us", pa.float64()),
        ("avg_us", pa.float64()),
        ("max_us", pa.float64()),
    ]
)

#: One row a rank, step, group, transport and packet size: the summed `Size Distribution`.
PACKETS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("group", _TEXT),
        ("transport", _TEXT),
        ("packet_bytes", pa.float64()),
        ("n_packets", pa.int64()),
        ("total_us", pa.float64()),
    ]
)

#: One row a rank and step of an r1.x step trace; `step` null is the mean that the file itself states.
#: `total = interval + forward_backward + tail`; `interval` lies before the forward pass.
ITERATIONS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("total_us", pa.float64()),
        ("interval_us", pa.float64()),
        ("forward_backward_us", pa.float64()),
        ("tail_us", pa.float64()),
    ]
)

#: One row a rank and call of the host into the runtime, as api_statistic.csv has it.
APIS = pa.schema(
    [
        ("rank", pa.int32()),
        ("level", _TEXT),
        ("api", pa.string()),
        ("n_calls", pa.int64()),
        ("total_us", pa.float64()),
        ("avg_us", pa.float64()),
        ("min_us", pa.float64()),
        ("max_us", pa.float64()),
    ]
)

#: Metric, label and value of a row of COUNTERS; None for a value that is not known.
Counter = tuple[str, str, float | None]

#: One row a figure of the capture as a whole; `metric` ends in its unit, `label` says of what.
COUNTERS = pa.schema(
    [
        ("rank", pa.int32()),
        ("metric", _TEXT),
        ("label", pa.string()),
        ("value", pa.float64()),
    ]
)


#: One row a rank and kind of kernel by name and shapes, as kernel_details.csv and the tasks of databases have
#: it, over all its steps. `wait_us` sums the time before each; `flops_count` is that of matrix products, null
#: for all else; `op_state` is `dynamic` for shapes that were known at run time only.
KERNELS = pa.schema(
    [
        ("rank", pa.int32()),
        ("op_type", _TEXT),
        ("core_type", _TEXT),
        ("name", _TEXT),
        ("input_shapes", _TEXT),
        ("output_shapes", _TEXT),
        ("op_state", _TEXT),
        ("n_calls", pa.int64()),
        ("total_us", pa.float64()),
        ("avg_us", pa.float64()),
        ("min_us", pa.float64()),
        ("max_us", pa.float64()),
        ("wait_us", pa.float64()),
        ("flops_count", pa.float64()),
    ]
)

#: One row a rank, component and moment: the largest values between it and the next one. `time_us` counts from
#: the rank's first record of that component.
MEMORY = pa.schema(
    [
        ("rank", pa.int32()),
        ("component", _TEXT),
        ("time_us", pa.float64()),
        ("allocated_bytes", pa.float64()),
        ("reserved_bytes", pa.float64()),
        ("active_bytes", pa.float64()),
    ]
)

#: One row a rank and change of its AI cores' clock; `time_us` counts from the first record.
FREQUENCY = pa.schema([("rank", pa.int32()), ("time_us", pa.float64()), ("frequency_mhz", pa.float64())])

#: One row a rank and environment variable that its capture records; "" where it was not set.
ENVIRONMENT = pa.schema([("rank", pa.int32()), ("variable", pa.string()), ("value", pa.string())])

#: One row a rank and step of r1.x: communication and waiting as hccl_raw states them, sums over operators
#: that run concurrently; time and bytes on SDMA and RDMA links, null where there were none.
COMMUNICATION_COSTS = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        *(
            (name, pa.float64())
            for name in ("communication_us", "wait_us", "sdma_us", "sdma_bytes", "rdma_us", "rdma_bytes")
        ),
    ]
)

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


#: Tables without rows, by the identity of their schema, which is kept with each: its hash takes 50 µs.
_EMPTY: dict[int, tuple[pa.Schema, pa.Table]] = {}


def empty(schema: pa.Schema) -> pa.Table:
    """Return the table of `schema` without rows, the same one each time."""
    found = _EMPTY.get(id(schema))
    if found is None:
        found = _EMPTY[id(schema)] = schema, schema.empty_table()
    return found[1]


# The reduction makes these of the tables above; reports read nothing else.

#: One row a rank: where it runs and its place in the job; null where unknown.
RANKS = pa.schema(
    [
        ("rank", pa.int32()),
        ("host", pa.string()),
        ("device", pa.int32()),
        ("stage", pa.int32()),
        ("tp_index", pa.int32()),
        ("dp_index", pa.int32()),
    ]
)

#: One row a communication operator and step, matched over the ranks of its group.
#: `transfer_us` is the shortest elapse, a rank's wait its elapse above that; `last_rank` waited least.
#: A message has a row for each of its calls: `rank` made the call (null for collectives), `last_rank` is the
#: end that came later, null where the other end is not known.
#: `ordinal` counts the operators of a group in a step. `size_bytes` is what links carried, else the payload;
#: null where no file says either.
MATCHED = pa.schema(
    [
        ("step", pa.int64()),
        ("group", _TEXT),
        ("role", _TEXT),
        ("op_type", _TEXT),
        ("op_name", pa.string()),
        ("ordinal", pa.int32()),
        ("n_ranks", pa.int32()),
        ("n_expected", pa.int32()),
        ("size_bytes", pa.float64()),
        ("transfer_us", pa.float64()),
        ("max_wait_us", pa.float64()),
        ("total_wait_us", pa.float64()),
        ("rank", pa.int32()),
        ("last_rank", pa.int32()),
    ]
)

#: One row a rank and step: its sums over communication operators, and the local time between them.
RANK_TIMES = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("wait_us", pa.float64()),
        ("transfer_us", pa.float64()),
        ("gap_us", pa.float64()),
    ]
)

#: One row a directed link, transport and kind of operator. `class_bandwidth_gbps` is the median of
#: the links it is compared with (null with fewer than three); `excess_share` how much longer it takes
#: for the same bytes (0.5 = half as long again).
LINK_SUMMARY = pa.schema(
    [
        ("src_rank", pa.int32()),
        ("dst_rank", pa.int32()),
        ("transport", _TEXT),
        ("op_type", _TEXT),
        ("n_observations", pa.int32()),
        ("size_bytes", pa.float64()),
        ("time_us", pa.float64()),
        ("bandwidth_gbps", pa.float64()),
        ("class_bandwidth_gbps", pa.float64()),
        ("excess_share", pa.float64()),
    ]
)
