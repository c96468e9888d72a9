"""Columns of what ranks recorded, and of what was matched between them."""

from typing import Final


class Ranks:
    """`run.frame("ranks")`: one row a rank: where it runs and its place in the job; null where
    unknown."""

    rank: Final = "rank"  # int32
    host: Final = "host"  # string
    device: Final = "device"  # int32
    stage: Final = "stage"  # int32
    tp_index: Final = "tp_index"  # int32
    dp_index: Final = "dp_index"  # int32


class Steps:
    """`run.frame("steps")`: one row a rank and step, as step_trace_time.csv has it."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int64
    computing_us: Final = "computing_us"
    communication_not_overlapped_us: Final = "communication_not_overlapped_us"
    overlapped_us: Final = "overlapped_us"
    communication_us: Final = "communication_us"
    free_us: Final = "free_us"
    stage_us: Final = "stage_us"
    bubble_us: Final = "bubble_us"
    communication_not_overlapped_exclude_receive_us: Final = "communication_not_overlapped_exclude_receive_us"
    preparing_us: Final = "preparing_us"


class Matched:
    """`run.frame("matched")`: one row a communication operator and step, matched over the ranks of its
    group. `transfer_us` is the shortest elapse, a rank's wait its elapse above that; `last_rank` waited
    least. A message has a row for each of its calls: `rank` made the call (null for collectives),
    `last_rank` is the end that came later, null where the other end is not known. `ordinal` counts the
    operators of a group in a step. `size_bytes` is what links carried, else the payload; null where no
    file says either."""

    step: Final = "step"  # int64
    group: Final = "group"  # category of string
    role: Final = "role"  # category of string
    op_type: Final = "op_type"  # category of string
    op_name: Final = "op_name"  # string
    ordinal: Final = "ordinal"  # int32
    n_ranks: Final = "n_ranks"  # int32
    n_expected: Final = "n_expected"  # int32
    size_bytes: Final = "size_bytes"
    transfer_us: Final = "transfer_us"
    max_wait_us: Final = "max_wait_us"
    total_wait_us: Final = "total_wait_us"
    rank: Final = "rank"  # int32
    last_rank: Final = "last_rank"  # int32


class RankTimes:
    """`run.frame("rank_times")`: one row a rank and step: its sums over communication operators, and the
    local time between them."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int64
    wait_us: Final = "wait_us"
    transfer_us: Final = "transfer_us"
    gap_us: Final = "gap_us"


class Links:
    """`run.frame("links")`: one row a directed link, transport and kind of operator.
    `class_bandwidth_gbps` is the median of the links it is compared with (null with fewer than three);
    `excess_share` how much longer it takes for the same bytes (0.5 = half as long again)."""

    src_rank: Final = "src_rank"  # int32
    dst_rank: Final = "dst_rank"  # int32
    transport: Final = "transport"  # category of string
    op_type: Final = "op_type"  # category of string
    n_observations: Final = "n_observations"  # int32
    size_bytes: Final = "size_bytes"
    time_us: Final = "time_us"
    bandwidth_gbps: Final = "bandwidth_gbps"
    class_bandwidth_gbps: Final = "class_bandwidth_gbps"
    excess_share: Final = "excess_share"


class Operators:
    """`run.frame("operators")`: one row a rank and kind of kernel, as op_statistic.csv has it, over all
    its steps."""

    rank: Final = "rank"  # int32
    op_type: Final = "op_type"  # category of string
    core_type: Final = "core_type"  # category of string
    n_calls: Final = "n_calls"  # int64
    total_us: Final = "total_us"
    min_us: Final = "min_us"
    avg_us: Final = "avg_us"
    max_us: Final = "max_us"


class Iterations:
    """`run.frame("iterations")`: one row a rank and step of an r1.x step trace; `step` null is the mean
    that the file itself states. `total = interval + forward_backward + tail`; `interval` lies before the
    forward pass."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int64
    total_us: Final = "total_us"
    interval_us: Final = "interval_us"
    forward_backward_us: Final = "forward_backward_us"
    tail_us: Final = "tail_us"


class Packets:
    """`run.frame("packets")`: one row a rank, step, group, transport and packet size: the summed `Size
    Distribution`."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int64
    group: Final = "group"  # category of string
    transport: Final = "transport"  # category of string
    packet_bytes: Final = "packet_bytes"
    n_packets: Final = "n_packets"  # int64
    total_us: Final = "total_us"


class Apis:
    """`run.frame("apis")`: one row a rank and call of the host into the runtime, as api_statistic.csv has
    it."""

    rank: Final = "rank"  # int32
    level: Final = "level"  # category of string
    api: Final = "api"  # string
    n_calls: Final = "n_calls"  # int64
    total_us: Final = "total_us"
    avg_us: Final = "avg_us"
    min_us: Final = "min_us"
    max_us: Final = "max_us"


class Counters:
    """`run.frame("counters")`: one row a figure of the capture as a whole; `metric` ends in its unit,
    `label` says of what."""

    rank: Final = "rank"  # int32
    metric: Final = "metric"  # category of string
    label: Final = "label"  # string
    value: Final = "value"


class Kernels:
    """`run.frame("kernels")`: one row a rank and kind of kernel by name and shapes, as kernel_details.csv
    and the tasks of databases have it, over all its steps. `wait_us` sums the time before each;
    `flops_count` is that of matrix products, null for all else; `op_state` is `dynamic` for shapes that
    were known at run time only."""

    rank: Final = "rank"  # int32
    op_type: Final = "op_type"  # category of string
    core_type: Final = "core_type"  # category of string
    name: Final = "name"  # category of string
    input_shapes: Final = "input_shapes"  # category of string
    output_shapes: Final = "output_shapes"  # category of string
    op_state: Final = "op_state"  # category of string
    n_calls: Final = "n_calls"  # int64
    total_us: Final = "total_us"
    avg_us: Final = "avg_us"
    min_us: Final = "min_us"
    max_us: Final = "max_us"
    wait_us: Final = "wait_us"
    flops_count: Final = "flops_count"


class Memory:
    """`run.frame("memory")`: one row a rank, component and moment: the largest values between it and the
    next one. `time_us` counts from the rank's first record of that component."""

    rank: Final = "rank"  # int32
    component: Final = "component"  # category of string
    time_us: Final = "time_us"
    allocated_bytes: Final = "allocated_bytes"
    reserved_bytes: Final = "reserved_bytes"
    active_bytes: Final = "active_bytes"


class Frequency:
    """`run.frame("frequency")`: one row a rank and change of its AI cores' clock; `time_us` counts from
    the first record."""

    rank: Final = "rank"  # int32
    time_us: Final = "time_us"
    frequency_mhz: Final = "frequency_mhz"


class Environment:
    """`run.frame("environment")`: one row a rank and environment variable that its capture records; ""
    where it was not set."""

    rank: Final = "rank"  # int32
    variable: Final = "variable"  # string
    value: Final = "value"  # string


class CommunicationCosts:
    """`run.frame("communication_costs")`: one row a rank and step of r1.x: communication and waiting as
    hccl_raw states them, sums over operators that run concurrently; time and bytes on SDMA and RDMA
    links, null where there were none."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int64
    communication_us: Final = "communication_us"
    wait_us: Final = "wait_us"
    sdma_us: Final = "sdma_us"
    sdma_bytes: Final = "sdma_bytes"
    rdma_us: Final = "rdma_us"
    rdma_bytes: Final = "rdma_bytes"
