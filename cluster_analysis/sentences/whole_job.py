"""Time of the whole job before its first operator and between operators, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Template
from cluster_run.facts import FindingFact

WHOLE_JOB: Mapping[FindingFact, Template] = {
    "late_first_operator": (
        "Every step begins with {wait_us:ms} before its first operator, {step_share:percent} of the step, "
        "{n_ranks:on the one rank that was read|on all ranks alike}.",
        "每步在第一个算子之前有 {wait_us:ms}，占每步的 {step_share:percent}"
        "（{n_ranks:仅读取的一张卡|所有卡都如此}）。",
    ),
    "loader_not_timed": (
        "Nobody timed the data loader: it may wait for input, or prepare the step on the host.",
        "没有 data loader 的耗时：可能在等待输入，也可能是主机在准备该步。",
    ),
    "loader_takes_most": (
        "Its data loader takes {loader_us:ms} of that.",
        "其中 data loader 占 {loader_us:ms}。",
    ),
    "loader_takes_little": (
        "Its data loader takes {loader_us:ms} of that only, the rest is the host's own work: copying the "
        "batch "
        "to the device, or Python before the first operator.",
        "其中 data loader 仅占 {loader_us:ms}，其余是主机自身的工作：向设备拷贝 batch，或第一个算子之前的 "
        "Python。",
    ),
    "head_split": (
        "Of that its data loader takes {loader_us:ms}, copying the batch to the device {copy_us:ms} (the "
        "device itself moves data for {moved_us:ms}: pinned memory is faster), the rest {rest_us:ms}.",
        "其中 data loader 占 {loader_us:ms}，向设备拷贝 batch 占 {copy_us:ms}（设备实际搬运 {moved_us:ms}："
        "使用锁页内存更快），其余 {rest_us:ms}。",
    ),
    "idle_split": (
        "Meanwhile the host waits for the device {synchronising_us:ms}, collects garbage {collecting_us:ms}, "
        "dispatches {dispatching_us:ms}, and does other work {elsewhere_us:ms}.",
        "其间主机等待设备同步 {synchronising_us:ms}，垃圾回收 {collecting_us:ms}，下发 {dispatching_us:ms}，"
        "其他工作 {elsewhere_us:ms}。",
    ),
    "devices_idle": (
        "Devices idle {idle_us:ms} a step between operators, {step_share:percent} of the step, "
        "{n_ranks:on the one rank that was read|on all ranks alike}: the host is too slow.",
        "设备每步在算子之间空闲 {idle_us:ms}，占每步的 {step_share:percent}"
        "（{n_ranks:仅读取的一张卡|所有卡都如此}）：主机下发过慢。",
    ),
}
