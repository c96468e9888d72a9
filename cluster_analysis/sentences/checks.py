"""Next checks by kind and cause of a finding, and the page that says more, in both languages."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cluster_analysis.sentences.findings import who
from cluster_analysis.sentences.phrase import Phrase, Template, fill, joined
from cluster_analysis.sentences.rules import rule_of
from cluster_run.findings import Finding

#: The address of the site that `make docs` builds, where there is one; the site of the documents uses it too.
BASE_VARIABLE = "CLUSTER_PROFILER_DOCS_URL"
#: By kind; of a rank or host by cause too. `where` is the rank or the host.
CHECKS: Mapping[str, Template] = {
    "compute": (
        "Compare AI Core frequency, temperature and power limit of {where} with its neighbours.",
        "对比{where}与相邻设备的 AI Core 频率、温度和功耗限制。",
    ),
    "low_clock": (
        "Look why the clock of {where} is low: temperature, power limit, cooling (npu-smi info -t temp, "
        "-t power).",
        "检查{where}频率低的原因：温度、功耗限制、散热（npu-smi info -t temp、-t power）。",
    ),
    "input": (
        "Look at data loading and storage on {where}: its steps begin late.",
        "检查{where}的数据加载与存储：它的每一步开始得晚。",
    ),
    "dispatch": (
        "Look at CPU load, core binding and garbage collection on {where}: work reaches the device too "
        "slowly.",
        "检查{where}的 CPU 负载、绑核与垃圾回收：任务下发到设备过慢。",
    ),
    "unknown": (
        "Profile {where} and one neighbour again over at least 5 steps.",
        "对{where}和一个相邻设备重新采集至少 5 步。",
    ),
    "slow_link": (
        "Run hccl_test between ranks {src} and {dst}, and between each of them and a third rank.",
        "在卡 {src} 与卡 {dst} 之间运行 hccl_test，再分别与第三张卡运行。",
    ),
    "slow_nic": (
        "Look at link state and error counters of the device of {where} (hccn_tool -link, -stat).",
        "检查{where}的设备的链路状态与错误计数（hccn_tool -link、-stat）。",
    ),
    "slow_port": (
        "Look at the health of the device of {where} and of its links inside the host (npu-smi info "
        "-t health, -t topo).",
        "检查{where}的设备及其主机内链路的健康状态（npu-smi info -t health、-t topo）。",
    ),
    "slow_host_pair": (
        "Measure bandwidth between hosts {hosts:and}, and look at the switches on the way.",
        "测量主机 {hosts:and} 之间的带宽，并检查途经的交换机。",
    ),
    "slow_uplink": (
        "Look at the switch port and the cabling of {hosts:host|hosts} {hosts:some}.",
        "检查主机 {hosts:some} 的交换机端口与线缆。",
    ),
    "no_matrix": (
        "Record communication_matrix.json (profiler level 1), or run hccl_test between them.",
        "采集 communication_matrix.json（profiler level 1），或在它们之间运行 hccl_test。",
    ),
    "packets_lost": (
        "Look at the RoCE counters (retransmissions, drops) of these NICs and their switch ports.",
        "检查这些网卡及其交换机端口的 RoCE 计数（重传、丢包）。",
    ),
    "host_link_stopped": (
        "Look at the host's kernel log and at the health of these devices and their links at that time.",
        "检查该时段主机的内核日志，以及这些设备和链路的健康状态。",
    ),
    "absent_members": (
        "Collect the other ranks of the job too, and analyse them together.",
        "请一并采集作业的其他卡，再合并分析。",
    ),
    "rank_pause": (
        "Look for garbage collection or logging that only rank {rank} does.",
        "查找只有卡 {rank} 才做的垃圾回收或日志输出。",
    ),
    "periodic_pause": (
        "Look at garbage collection and checkpoints: can they be rarer?",
        "检查垃圾回收与检查点（checkpoint）：能否减少次数。",
    ),
    "stage_imbalance": (
        "Move layers from the longest stage to the others, or the loss and embedding to their own.",
        "将最长阶段的层移到其他阶段，或将 loss 与 embedding 单独放置。",
    ),
    "data_imbalance": (
        "Balance the tokens of the replicas: sort samples by length, or pack the sequences.",
        "均衡各副本的 token 数：按长度排序样本，或对序列打包（packing）。",
    ),
    "expert_imbalance": (
        "Look at the tokens by expert: raise the balancing loss, or place busy experts apart.",
        "查看各专家的 token 数：增大负载均衡损失，或将繁忙的专家分开放置。",
    ),
    "small_packets": (
        "Gather them into fewer, larger operators (gradient buckets, fused communication).",
        "合并为更少、更大的通信算子（梯度分桶、通信融合）。",
    ),
    "exposed_communication": (
        "Where ranks wait for each other, find first for whom; then overlap what is left with computing "
        "(gradient buckets, communication beside the backward pass).",
        "若各卡在互相等待，先查明在等谁；再让其余通信与计算重叠（梯度分桶、与反向计算并行通信）。",
    ),
    "exposed_of_some_ranks": (
        "Collect the other ranks of the job too: those that are waited for may be among them; then overlap "
        "what is left with computing.",
        "请一并采集作业的其他卡：被等待的卡可能就在其中；再让其余通信与计算重叠。",
    ),
    "input_bound": (
        "Look at data loading: more workers, prefetching, a faster file system.",
        "检查数据加载：增加 worker、预取，或使用更快的文件系统。",
    ),
    "head_split": (
        "Copy batches from pinned memory without waiting (pin_memory=True, non_blocking=True), load them "
        "with "
        "more workers, and look at what the loop does before its forward pass.",
        "从锁页内存异步拷贝 batch（pin_memory=True、non_blocking=True），增加数据加载的 worker 数，"
        "并检查循环在前向之前做了什么。",
    ),
    "loader_not_timed": (
        "Record operator_details.csv (with_stack) or a timeline: does the host wait for its data loader "
        "there, "
        "copy the batch, or run Python?",
        "采集 operator_details.csv（with_stack）或时间线：看主机是在等待 data loader、拷贝 batch，"
        "还是在执行 Python。",
    ),
    "host_bound": (
        "Look at operator launches: larger batches, graph mode, fused operators, free CPU cores.",
        "检查算子下发：增大 batch、图模式、融合算子、预留空闲 CPU 核。",
    ),
}
_HOST: Template = ("host {host}", "主机 {host}")
#: Facts that say better than the kind what to look at.
_CONDITIONS = {
    "no_matrix": "no_matrix",
    "port": "slow_port",
    "port_sending": "slow_port",
    "port_receiving": "slow_port",
    "clock_below_peers": "low_clock",
    "packets_lost": "packets_lost",
    "sent_again": "packets_lost",
    "host_link_stopped": "host_link_stopped",
    "loader_not_timed": "loader_not_timed",
    "loader_takes_little": "loader_not_timed",
    "head_split": "head_split",
    "ranks_pause_by_turns": "periodic_pause",
    "absent_members": "absent_members",
    "exposed_of_some_ranks": "exposed_of_some_ranks",
}


def next_check(finding: Finding) -> Phrase:
    """Return what to look at next: by the kind of finding, then by the rules that may be its reason."""
    host = finding.hosts[0] if finding.hosts else ""
    first = finding.links[0] if finding.links else None
    values = {
        "where": fill(_HOST, {"host": host}) if finding.record.subject == "host" else who(finding),
        "rank": finding.ranks[0] if finding.ranks else None,
        "hosts": finding.hosts,
        "src": first.src if first else None,
        "dst": first.dst if first else None,
    }
    first_of_all = fill(CHECKS[check_kind(finding)], values)
    return joined([first_of_all, *(one for rule in finding.advice for one in rule_of(rule))])


def check_kind(finding: Finding) -> str:
    """Return the key of `CHECKS` that fits a finding."""
    said = next((_CONDITIONS[one.kind] for one in finding.facts if one.kind in _CONDITIONS), None)
    if said is not None:
        return said
    if finding.record.part == "slow_devices":
        return finding.cause if finding.cause in CHECKS else "unknown"
    if finding.kind == "retransmission":
        return "packets_lost"
    if finding.kind == "periodic_pause" and finding.ranks:
        return "rank_pause"
    return finding.kind


def page_of(finding: Finding) -> Phrase:
    """Return the page of the documents that says what such a finding means, in both languages.

    Without a site it is the file of the documents, as it lies in the repository.
    """
    base = os.environ.get(BASE_VARIABLE, "").rstrip("/")
    folder, suffix = (base, "html") if base else ("docs", "md")
    return Phrase(
        f"{folder}/findings.{suffix}#{finding.kind}", f"{folder}/zh/findings.{suffix}#{finding.kind}"
    )
