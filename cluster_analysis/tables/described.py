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

#: One row a rule that holds: `advice` names it in `describe.rules`.
ADVICE = pa.schema(
    [
        ("rule", pa.string()),
        ("ranks", pa.list_(pa.int32())),
        ("value", pa.float64()),
        ("limit", pa.float64()),
        ("sentence", pa.string()),
        ("next_check", pa.string()),
        ("source", pa.string()),
    ]
)
