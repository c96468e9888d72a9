"""The tables that are made of others to be read by people: nothing is judged by them."""

from __future__ import annotations

import pyarrow as pa

from cluster_analysis.tables.schema import STEPS

_TEXT = pa.dictionary(pa.int32(), pa.string())
_FIVE = [(name, pa.float64()) for name in ("min_us", "q1_us", "median_us", "q3_us", "max_us")]

#: One row a group and kind of operator over all steps. `transfer_us` sums the operators' transfers, `wait_us`
#: all ranks' waits; quartiles are those of the longest wait in each operator.
COMMUNICATION = pa.schema(
    [
        ("group", _TEXT),
        ("role", _TEXT),
        ("op_type", _TEXT),
        ("n_operators", pa.int64()),
        ("size_bytes", pa.float64()),
        ("transfer_us", pa.float64()),
        ("wait_us", pa.float64()),
        *_FIVE,
        ("slowest_operator", pa.string()),
        ("slowest_us", pa.float64()),
    ]
)

#: One row a stage and kind of kernel: its time over all steps on the ranks of the stage, 0 on one without it.
KERNEL_SPREAD = pa.schema(
    [
        ("stage", pa.int32()),
        ("op_type", _TEXT),
        ("core_type", _TEXT),
        ("name", _TEXT),
        ("input_shapes", _TEXT),
        ("n_ranks", pa.int32()),
        ("n_calls", pa.int64()),
        *_FIVE,
        ("slowest_rank", pa.int32()),
        ("slowest_excess_us", pa.float64()),
    ]
)

#: One row a figure: what it is, over the ranks that have it. The unit is in the name of the metric.
FIGURES_BETWEEN_RANKS = pa.schema(
    [
        ("metric", pa.string()),
        ("label", pa.string()),
        ("n_ranks", pa.int32()),
        ("min_value", pa.float64()),
        ("median_value", pa.float64()),
        ("max_value", pa.float64()),
        ("max_rank", pa.int32()),
    ]
)

#: One row a rank: floating-point operations `of` a step (stated by r1.x) or of recorded matrix products.
FLOPS = pa.schema(
    [
        ("rank", pa.int32()),
        ("of", pa.string()),
        ("flops_count", pa.float64()),
        ("flops_per_s", pa.float64()),
        ("peak_share", pa.float64()),
        ("share_of_largest", pa.float64()),
    ]
)

#: One row a rank and component: the most it took. Component `theoretical` is r1.x' plan, with the capacity.
MEMORY_PEAKS = pa.schema(
    [
        ("rank", pa.int32()),
        ("component", _TEXT),
        ("allocated_bytes", pa.float64()),
        ("reserved_bytes", pa.float64()),
        ("active_bytes", pa.float64()),
        ("capacity_bytes", pa.float64()),
        ("peers_median_bytes", pa.float64()),
    ]
)

#: One row a pipeline stage: means over its ranks and steps.
STAGES = pa.schema(
    [
        ("stage", pa.int32()),
        ("n_ranks", pa.int32()),
        *(field for field in STEPS if field.name.endswith("_us")),
    ]
)

#: One row a rank whose FLOPs, memory or clock is known: what maps of hosts and devices show.
DEVICES = pa.schema(
    [
        ("rank", pa.int32()),
        ("host", pa.string()),
        ("device", pa.int32()),
        ("flops_share", pa.float64()),
        ("memory_bytes", pa.float64()),
        ("capacity_bytes", pa.float64()),
        ("lowest_clock_mhz", pa.float64()),
        ("highest_clock_mhz", pa.float64()),
    ]
)

#: One row a communication group of two ranks or more: what it is for, and who is in it. `communicator` is its
#: name in other tables.
GROUPS = pa.schema(
    [
        ("role", pa.string()),
        ("group", pa.string()),
        ("n_ranks", pa.int32()),
        ("ranks", pa.list_(pa.int32())),
        ("communicator", pa.string()),
    ]
)

#: One row a rank: what it does in one step, a byte a cell of `cell_us`: 0 it has ended, 1 its own work, 2 it
#: waits, 3 it transfers.
LANES = pa.schema(
    [("rank", pa.int32()), ("step", pa.int32()), ("cell_us", pa.float64()), ("cells", pa.binary())]
)

#: The critical path of that step, in order: whose `work` or `transfer` all wait for, from when to when.
CRITICAL_PATH = pa.schema(
    [("rank", pa.int32()), ("begin_us", pa.float64()), ("end_us", pa.float64()), ("kind", pa.string())]
)

#: Who waits for whom in that step, whatever stands between: one row a rank that waits and a rank whose
#: work it waits for, null for the network.
WAITS = pa.schema([("rank", pa.int32()), ("for_rank", pa.int32()), ("wait_us", pa.float64())])

#: One row a transport and power of two that packets are as large as, or less than twice.
PACKET_SIZES = pa.schema(
    [
        ("transport", pa.string()),
        ("from_bytes", pa.float64()),
        ("n_packets", pa.int64()),
        ("size_bytes", pa.float64()),
        ("total_us", pa.float64()),
        ("bandwidth_gbps", pa.float64()),
    ]
)

#: One row a rank: its free time by what the host did meanwhile, summed over steps; the median time from a
#: kernel's launch to its start, and the share of kernels that started within 50 µs of it.
HOST_TIMES = pa.schema(
    [
        ("rank", pa.int32()),
        *(
            (name, pa.float64())
            for name in (
                "synchronising_us",
                "collecting_us",
                "dispatching_us",
                "elsewhere_us",
                "dispatch_delay_us",
                "dispatched_late_share",
                "host_cpu_busy_share",
            )
        ),
    ]
)

#: One row a metric and rank, or host: how much slower it is than its peers in the same steps (logarithm of a
#: ratio of times, or share of the step), with its standard error. `cluster-fleet add` remembers it.
RELATIVE_TO_PEERS = pa.schema(
    [
        ("metric", pa.string()),
        ("rank", pa.int32()),
        ("host", pa.string()),
        ("value", pa.float64()),
        ("error", pa.float64()),
    ]
)

#: One row a rule that holds: `advice` names it in `describe.rules`.
ADVICE = pa.schema(
    [
        ("rule", pa.string()),
        ("ranks", pa.list_(pa.int32())),
        ("value", pa.float64()),
        ("limit", pa.float64()),
        ("sentence", pa.string()),
        ("next_check", pa.string()),
        ("sentence_zh", pa.string()),
        ("next_check_zh", pa.string()),
        ("source", pa.string()),
    ]
)
