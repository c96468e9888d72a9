"""Columns of what describes the job, and of the findings."""

from __future__ import annotations

from typing import Final

from cluster_analysis.tables.columns_measured import PartsOfStep
from cluster_analysis.tables.table import BINARY, CATEGORY, FLOAT64, INT32, INT64, LIST_OF_INT32, TEXT, Table


class ComputingApart(Table):
    """One row a rank: all that it computed, what of that was in kernels that may wait for others, and the
    rest.
    """

    rank = INT32
    computing_us = FLOAT64
    fused_us = FLOAT64
    apart_us = FLOAT64
    n_fused = INT64


class Lanes(Table):
    """One row a rank: what it does in one step, a byte a cell of `cell_us`: 0 it has ended, 1 its own
    work, 2 it waits, 3 it transfers.
    """

    rank = INT32
    step = INT64
    cell_us = FLOAT64
    cells = BINARY


class CriticalPath(Table):
    """The critical path of that step, in order: whose `work` or `transfer` all wait for, from when to
    when.
    """

    rank = INT32
    begin_us = FLOAT64
    end_us = FLOAT64
    kind = TEXT


class Waits(Table):
    """Who waits for whom in that step, without the ranks between: one row a rank that waits and a rank whose
    work it waits for, null for the network.
    """

    rank = INT32
    for_rank = INT32
    wait_us = FLOAT64


class Communication(Table):
    """One row a group and kind of operator over all steps. `transfer_us` sums the operators' transfers,
    `wait_us` all ranks' waits; quartiles are those of the longest wait in each operator.
    """

    group = CATEGORY
    role = CATEGORY
    op_type = CATEGORY
    n_operators = INT64
    size_bytes = FLOAT64
    transfer_us = FLOAT64
    wait_us = FLOAT64
    min_us = FLOAT64
    q1_us = FLOAT64
    median_us = FLOAT64
    q3_us = FLOAT64
    max_us = FLOAT64
    slowest_operator = TEXT
    slowest_us = FLOAT64


class KernelSpread(Table):
    """One row a stage and kind of kernel: its time over all steps on the ranks of the stage, 0 on one
    without it.
    """

    stage = INT32
    op_type = CATEGORY
    core_type = CATEGORY
    name = CATEGORY
    input_shapes = CATEGORY
    n_ranks = INT32
    n_calls = INT64
    min_us = FLOAT64
    q1_us = FLOAT64
    median_us = FLOAT64
    q3_us = FLOAT64
    max_us = FLOAT64
    slowest_rank = INT32
    slowest_excess_us = FLOAT64


class FiguresBetweenRanks(Table):
    """One row a figure: what it is, over the ranks that have it. The unit is in the name of the
    metric."""

    metric = TEXT
    label = TEXT
    n_ranks = INT32
    min_value = FLOAT64
    median_value = FLOAT64
    max_value = FLOAT64
    max_rank = INT32


class Flops(Table):
    """One row a rank: floating-point operations `of` a step (stated by r1.x) or of recorded matrix
    products.
    """

    rank = INT32
    of = TEXT
    flops_count = FLOAT64
    flops_per_s = FLOAT64
    peak_share = FLOAT64
    share_of_largest = FLOAT64


class MemoryPeaks(Table):
    """One row a rank and component: the most it took. Component `theoretical` is r1.x' plan, with the
    capacity.
    """

    rank = INT32
    component = CATEGORY
    allocated_bytes = FLOAT64
    reserved_bytes = FLOAT64
    active_bytes = FLOAT64
    capacity_bytes = FLOAT64
    peers_median_bytes = FLOAT64


class Stages(PartsOfStep):
    """One row a pipeline stage: means over its ranks and steps."""

    stage = INT32
    n_ranks = INT32


class Devices(Table):
    """One row a rank whose FLOPs, memory or clock is known: what maps of hosts and devices show."""

    rank = INT32
    host = TEXT
    device = INT32
    flops_share = FLOAT64
    memory_bytes = FLOAT64
    capacity_bytes = FLOAT64
    lowest_clock_mhz = FLOAT64
    highest_clock_mhz = FLOAT64


class Groups(Table):
    """One row a communication group of two ranks or more: what it is for, and who is in it.
    `communicator` is its name in other tables.
    """

    role = TEXT
    group = TEXT
    n_ranks = INT32
    ranks = LIST_OF_INT32
    communicator = TEXT


class PacketSizes(Table):
    """One row a transport and power of two that packets are as large as, or less than twice."""

    transport = TEXT
    from_bytes = FLOAT64
    n_packets = INT64
    size_bytes = FLOAT64
    total_us = FLOAT64
    bandwidth_gbps = FLOAT64


class HostTimes(Table):
    """One row a rank: its free time by what the host did meanwhile, summed over steps; the median time
    from a kernel's launch to its start, and the share of kernels that started within 50 µs of it.
    """

    rank = INT32
    synchronising_us = FLOAT64
    collecting_us = FLOAT64
    dispatching_us = FLOAT64
    elsewhere_us = FLOAT64
    dispatch_delay_us = FLOAT64
    dispatched_late_share = FLOAT64
    host_cpu_busy_share = FLOAT64


class RelativeToPeers(Table):
    """One row a metric and rank, or host: how much slower it is than its peers in the same steps
    (logarithm of a ratio of times, or share of the step), with its standard error. `cluster-fleet add`
    remembers it.
    """

    metric = TEXT
    rank = INT32
    host = TEXT
    value = FLOAT64
    error = FLOAT64


class Advice(Table):
    """One row a rule that holds: `advice` names it in `describe.rules`."""

    rule = TEXT
    ranks = LIST_OF_INT32
    value = FLOAT64
    limit = FLOAT64
    sentence = TEXT
    next_check = TEXT
    sentence_zh = TEXT
    next_check_zh = TEXT
    source = TEXT


class Findings:
    """The columns of `run.findings`: one row a finding, the costliest first."""

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
