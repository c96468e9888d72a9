"""Columns of what describes the job, and of the findings."""

from typing import Final


class ComputingApart:
    """`run.frame("computing_apart")`: one row a rank: all that it computed, what of that was in kernels
    that may wait for others, and the rest."""

    rank: Final = "rank"  # int32
    computing_us: Final = "computing_us"
    fused_us: Final = "fused_us"
    apart_us: Final = "apart_us"
    n_fused: Final = "n_fused"  # int64


class Lanes:
    """`run.frame("lanes")`: one row a rank: what it does in one step, a byte a cell of `cell_us`: 0 it
    has ended, 1 its own work, 2 it waits, 3 it transfers."""

    rank: Final = "rank"  # int32
    step: Final = "step"  # int32
    cell_us: Final = "cell_us"
    cells: Final = "cells"  # binary


class CriticalPath:
    """`run.frame("critical_path")`: the critical path of that step, in order: whose `work` or `transfer`
    all wait for, from when to when."""

    rank: Final = "rank"  # int32
    begin_us: Final = "begin_us"
    end_us: Final = "end_us"
    kind: Final = "kind"  # string


class Waits:
    """`run.frame("waits")`: who waits for whom in that step, whatever stands between: one row a rank that
    waits and a rank whose work it waits for, null for the network."""

    rank: Final = "rank"  # int32
    for_rank: Final = "for_rank"  # int32
    wait_us: Final = "wait_us"


class Communication:
    """`run.frame("communication")`: one row a group and kind of operator over all steps. `transfer_us`
    sums the operators' transfers, `wait_us` all ranks' waits; quartiles are those of the longest wait in
    each operator."""

    group: Final = "group"  # category of string
    role: Final = "role"  # category of string
    op_type: Final = "op_type"  # category of string
    n_operators: Final = "n_operators"  # int64
    size_bytes: Final = "size_bytes"
    transfer_us: Final = "transfer_us"
    wait_us: Final = "wait_us"
    min_us: Final = "min_us"
    q1_us: Final = "q1_us"
    median_us: Final = "median_us"
    q3_us: Final = "q3_us"
    max_us: Final = "max_us"
    slowest_operator: Final = "slowest_operator"  # string
    slowest_us: Final = "slowest_us"


class KernelSpread:
    """`run.frame("kernel_spread")`: one row a stage and kind of kernel: its time over all steps on the
    ranks of the stage, 0 on one without it."""

    stage: Final = "stage"  # int32
    op_type: Final = "op_type"  # category of string
    core_type: Final = "core_type"  # category of string
    name: Final = "name"  # category of string
    input_shapes: Final = "input_shapes"  # category of string
    n_ranks: Final = "n_ranks"  # int32
    n_calls: Final = "n_calls"  # int64
    min_us: Final = "min_us"
    q1_us: Final = "q1_us"
    median_us: Final = "median_us"
    q3_us: Final = "q3_us"
    max_us: Final = "max_us"
    slowest_rank: Final = "slowest_rank"  # int32
    slowest_excess_us: Final = "slowest_excess_us"


class FiguresBetweenRanks:
    """`run.frame("figures_between_ranks")`: one row a figure: what it is, over the ranks that have it.
    The unit is in the name of the metric."""

    metric: Final = "metric"  # string
    label: Final = "label"  # string
    n_ranks: Final = "n_ranks"  # int32
    min_value: Final = "min_value"
    median_value: Final = "median_value"
    max_value: Final = "max_value"
    max_rank: Final = "max_rank"  # int32


class Flops:
    """`run.frame("flops")`: one row a rank: floating-point operations `of` a step (stated by r1.x) or of
    recorded matrix products."""

    rank: Final = "rank"  # int32
    of: Final = "of"  # string
    flops_count: Final = "flops_count"
    flops_per_s: Final = "flops_per_s"
    peak_share: Final = "peak_share"
    share_of_largest: Final = "share_of_largest"


class MemoryPeaks:
    """`run.frame("memory_peaks")`: one row a rank and component: the most it took. Component
    `theoretical` is r1.x' plan, with the capacity."""

    rank: Final = "rank"  # int32
    component: Final = "component"  # category of string
    allocated_bytes: Final = "allocated_bytes"
    reserved_bytes: Final = "reserved_bytes"
    active_bytes: Final = "active_bytes"
    capacity_bytes: Final = "capacity_bytes"
    peers_median_bytes: Final = "peers_median_bytes"


class Stages:
    """`run.frame("stages")`: one row a pipeline stage: means over its ranks and steps."""

    stage: Final = "stage"  # int32
    n_ranks: Final = "n_ranks"  # int32
    computing_us: Final = "computing_us"
    communication_not_overlapped_us: Final = "communication_not_overlapped_us"
    overlapped_us: Final = "overlapped_us"
    communication_us: Final = "communication_us"
    free_us: Final = "free_us"
    stage_us: Final = "stage_us"
    bubble_us: Final = "bubble_us"
    communication_not_overlapped_exclude_receive_us: Final = "communication_not_overlapped_exclude_receive_us"
    preparing_us: Final = "preparing_us"


class Devices:
    """`run.frame("devices")`: one row a rank whose FLOPs, memory or clock is known: what maps of hosts
    and devices show."""

    rank: Final = "rank"  # int32
    host: Final = "host"  # string
    device: Final = "device"  # int32
    flops_share: Final = "flops_share"
    memory_bytes: Final = "memory_bytes"
    capacity_bytes: Final = "capacity_bytes"
    lowest_clock_mhz: Final = "lowest_clock_mhz"
    highest_clock_mhz: Final = "highest_clock_mhz"


class Groups:
    """`run.frame("groups")`: one row a communication group of two ranks or more: what it is for, and who
    is in it. `communicator` is its name in other tables."""

    role: Final = "role"  # string
    group: Final = "group"  # string
    n_ranks: Final = "n_ranks"  # int32
    ranks: Final = "ranks"  # list of int32
    communicator: Final = "communicator"  # string


class PacketSizes:
    """`run.frame("packet_sizes")`: one row a transport and power of two that packets are as large as, or
    less than twice."""

    transport: Final = "transport"  # string
    from_bytes: Final = "from_bytes"
    n_packets: Final = "n_packets"  # int64
    size_bytes: Final = "size_bytes"
    total_us: Final = "total_us"
    bandwidth_gbps: Final = "bandwidth_gbps"


class HostTimes:
    """`run.frame("host_times")`: one row a rank: its free time by what the host did meanwhile, summed
    over steps; the median time from a kernel's launch to its start, and the share of kernels that started
    within 50 µs of it."""

    rank: Final = "rank"  # int32
    synchronising_us: Final = "synchronising_us"
    collecting_us: Final = "collecting_us"
    dispatching_us: Final = "dispatching_us"
    elsewhere_us: Final = "elsewhere_us"
    dispatch_delay_us: Final = "dispatch_delay_us"
    dispatched_late_share: Final = "dispatched_late_share"
    host_cpu_busy_share: Final = "host_cpu_busy_share"


class RelativeToPeers:
    """`run.frame("relative_to_peers")`: one row a metric and rank, or host: how much slower it is than
    its peers in the same steps (logarithm of a ratio of times, or share of the step), with its standard
    error. `cluster-fleet add` remembers it."""

    metric: Final = "metric"  # string
    rank: Final = "rank"  # int32
    host: Final = "host"  # string
    value: Final = "value"
    error: Final = "error"


class Advice:
    """`run.frame("advice")`: one row a rule that holds: `advice` names it in `describe.rules`."""

    rule: Final = "rule"  # string
    ranks: Final = "ranks"  # list of int32
    value: Final = "value"
    limit: Final = "limit"
    sentence: Final = "sentence"  # string
    next_check: Final = "next_check"  # string
    sentence_zh: Final = "sentence_zh"  # string
    next_check_zh: Final = "next_check_zh"  # string
    source: Final = "source"  # string


class Findings:
    """`run.findings`: one row a finding, the costliest first."""

    id: Final = "id"
    kind: Final = "kind"
    severity: Final = "severity"
    cause: Final = "cause"
    pattern: Final = "pattern"
    confidence: Final = "confidence"
    ranks: Final = "ranks"
    hosts: Final = "hosts"
    links: Final = "links"
    places: Final = "places"
    steps: Final = "steps"
    cost_ms_per_step: Final = "cost_ms_per_step"
    cost_share: Final = "cost_share"
    cumulative_saving_ms: Final = "cumulative_saving_ms"
    summary: Final = "summary"
    next_check: Final = "next_check"
    page: Final = "page"
