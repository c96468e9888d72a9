"""Columns of what ranks recorded, and of what was matched between them."""

from __future__ import annotations

from cluster_analysis.tables.table import CATEGORY, FLOAT64, INT32, INT64, TEXT, Table


class Ranks(Table):
    """One row a rank: where it runs and its place in the job; null where unknown."""

    rank = INT32
    host = TEXT
    device = INT32
    stage = INT32
    tp_index = INT32
    dp_index = INT32


class PartsOfStep(Table):
    """The times of a step, as step_trace_time.csv has them."""

    computing_us = FLOAT64
    communication_not_overlapped_us = FLOAT64
    overlapped_us = FLOAT64
    communication_us = FLOAT64
    free_us = FLOAT64
    stage_us = FLOAT64
    bubble_us = FLOAT64
    communication_not_overlapped_exclude_receive_us = FLOAT64
    preparing_us = FLOAT64


class Steps(PartsOfStep):
    """One row a rank and step, as step_trace_time.csv has it."""

    rank = INT32
    step = INT64


class Matched(Table):
    """One row a communication operator and step, matched over the ranks of its group. `transfer_us` is
    the shortest elapse, a rank's wait its elapse above that; `last_rank` waited least. A message has a
    row for each of its calls: `rank` made the call (null for collectives), `last_rank` is the end that
    came later, null where the other end is not known. `ordinal` counts the operators of a group in a
    step. `size_bytes` is what links carried, else the payload; null where no file says either.
    """

    step = INT64
    group = CATEGORY
    role = CATEGORY
    op_type = CATEGORY
    op_name = TEXT
    ordinal = INT32
    n_ranks = INT32
    n_expected = INT32
    size_bytes = FLOAT64
    transfer_us = FLOAT64
    max_wait_us = FLOAT64
    total_wait_us = FLOAT64
    rank = INT32
    last_rank = INT32


class RankTimes(Table):
    """One row a rank and step: its sums over communication operators, and the local time between them."""

    rank = INT32
    step = INT64
    wait_us = FLOAT64
    transfer_us = FLOAT64
    gap_us = FLOAT64


class Links(Table):
    """One row a directed link, transport and kind of operator. `class_bandwidth_gbps` is the median of
    the links it is compared with (null with fewer than three); `excess_share` how much longer it takes
    for the same bytes (0.5 = half as long again).
    """

    src_rank = INT32
    dst_rank = INT32
    transport = CATEGORY
    op_type = CATEGORY
    n_observations = INT32
    size_bytes = FLOAT64
    time_us = FLOAT64
    bandwidth_gbps = FLOAT64
    class_bandwidth_gbps = FLOAT64
    excess_share = FLOAT64


class Operators(Table):
    """One row a rank and kind of kernel, as op_statistic.csv has it, over all its steps."""

    rank = INT32
    op_type = CATEGORY
    core_type = CATEGORY
    n_calls = INT64
    total_us = FLOAT64
    min_us = FLOAT64
    avg_us = FLOAT64
    max_us = FLOAT64


class Iterations(Table):
    """One row a rank and step of an r1.x step trace; `step` null is the mean that the file itself states.
    `total = interval + forward_backward + tail`; `interval` lies before the forward pass.
    """

    rank = INT32
    step = INT64
    total_us = FLOAT64
    interval_us = FLOAT64
    forward_backward_us = FLOAT64
    tail_us = FLOAT64


class Packets(Table):
    """One row a rank, step, group, transport and packet size: the summed `Size Distribution`."""

    rank = INT32
    step = INT64
    group = CATEGORY
    transport = CATEGORY
    packet_bytes = FLOAT64
    n_packets = INT64
    total_us = FLOAT64


class Apis(Table):
    """One row a rank and call of the host into the runtime, as api_statistic.csv has it."""

    rank = INT32
    level = CATEGORY
    api = TEXT
    n_calls = INT64
    total_us = FLOAT64
    avg_us = FLOAT64
    min_us = FLOAT64
    max_us = FLOAT64


class Counters(Table):
    """One row a figure of the capture as a whole; `metric` ends in its unit, `label` says of what."""

    rank = INT32
    metric = CATEGORY
    label = TEXT
    value = FLOAT64


class Kernels(Table):
    """One row a rank and kind of kernel by name and shapes, as kernel_details.csv and the tasks of
    databases have it, over all its steps. `wait_us` sums the time before each; `flops_count` is that of
    matrix products, null for all else; `op_state` is `dynamic` for shapes that were known at run time
    only.
    """

    rank = INT32
    op_type = CATEGORY
    core_type = CATEGORY
    name = CATEGORY
    input_shapes = CATEGORY
    output_shapes = CATEGORY
    op_state = CATEGORY
    n_calls = INT64
    total_us = FLOAT64
    avg_us = FLOAT64
    min_us = FLOAT64
    max_us = FLOAT64
    wait_us = FLOAT64
    flops_count = FLOAT64


class Memory(Table):
    """One row a rank, component and moment: the largest values between it and the next one. `time_us`
    counts from the rank's first record.
    """

    rank = INT32
    component = CATEGORY
    time_us = FLOAT64
    allocated_bytes = FLOAT64
    reserved_bytes = FLOAT64
    active_bytes = FLOAT64


class Frequency(Table):
    """One row a rank and change of its AI cores' clock; `time_us` counts from the first record."""

    rank = INT32
    time_us = FLOAT64
    frequency_mhz = FLOAT64


class Environment(Table):
    """One row a rank and environment variable that its capture records; "" where it was not set."""

    rank = INT32
    variable = TEXT
    value = TEXT


class CommunicationCosts(Table):
    """One row a rank and step of r1.x: communication and waiting as hccl_raw states them, sums over
    operators that run concurrently; time and bytes on SDMA and RDMA links, null where there were none.
    """

    rank = INT32
    step = INT64
    communication_us = FLOAT64
    wait_us = FLOAT64
    sdma_us = FLOAT64
    sdma_bytes = FLOAT64
    rdma_us = FLOAT64
    rdma_bytes = FLOAT64
