"""Sentences of the advice's rules, and the next checks, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_run.facts import Fact
from cluster_run.findings import RuleName

#: Of each rule what it says and what to do. `{who}` are the ranks it holds for, `{value}` is the largest.
RULES: Mapping[RuleName, tuple[Template, Template]] = {
    "ai_cpu": (
        (
            "On {who} up to {value:percent} of the time of kernels runs on the AI CPU, far slower than AI "
            "cores.",
            "{who}上最多 {value:percent} 的 kernel 时间运行在 AI CPU 上，远慢于 AI Core。",
        ),
        (
            "Replace these operators, or their data types (int64, float64), by ones that AI cores have.",
            "将这些算子或其数据类型（int64、float64）换成 AI Core 支持的。",
        ),
    ),
    "format_changes": (
        (
            "On {who} up to {value:percent} of the time of kernels only changes formats or types (TransData, "
            "Cast).",
            "{who}上最多 {value:percent} 的 kernel 时间只用于转换格式或类型（TransData、Cast）。",
        ),
        (
            "Keep weights in the device's own format (torch_npu.npu.config.allow_internal_format), and "
            "one type.",
            "让权重保持设备的私有格式（torch_npu.npu.config.allow_internal_format），并统一数据类型。",
        ),
    ),
    "compiled_at_run_time": (
        (
            "On {who} up to {value:.0f} operators were compiled at run time, or looked up "
            "(aclopCompileAndExecute).",
            "{who}上最多有 {value:.0f} 次在线编译或查找算子（aclopCompileAndExecute）。",
        ),
        (
            "torch_npu.npu.set_compile_mode(jit_compile=False), in the first lines of the program.",
            "在程序开头设置 torch_npu.npu.set_compile_mode(jit_compile=False)。",
        ),
    ),
    "changing_shapes": (
        (
            "On {who} one kernel ran with up to {value:.0f} different shapes.",
            "{who}上同一 kernel 最多有 {value:.0f} 种不同的 shape。",
        ),
        (
            "Where the host is too slow: bucket lengths, or "
            "torch_npu.npu.set_compile_mode(jit_compile=False).",
            "若主机下发过慢：对长度分桶，或设置 torch_npu.npu.set_compile_mode(jit_compile=False)。",
        ),
    ),
    "bound_operators": (
        (
            "On {who} up to {value:percent} of the time of matrix products runs at less than half of the "
            "speed of that rank's other products.",
            "{who}上最多 {value:percent} 的矩阵乘时间，其速度不到本卡其他矩阵乘的一半。",
        ),
        (
            "Look for small or odd shapes among them (table kernels): multiples of 16 fill the cube unit.",
            "在 kernels 表中查找过小或不对齐的 shape：16 的倍数才能填满 cube 单元。",
        ),
    ),
    "byte_alignment": (
        (
            "On {who} packets that are no multiple of 512 bytes take up to {value:percent} of the time on "
            "links.",
            "{who}上大小不是 512 字节整数倍的数据包最多占链路时间的 {value:percent}。",
        ),
        (
            "Pad what is sent (gradient buckets, the size of shards) to multiples of 512 bytes.",
            "将发送的数据（梯度桶、分片大小）补齐到 512 字节的整数倍。",
        ),
    ),
    "clock": (
        (
            "On {who} the clock of the AI cores falls up to {value:percent} below the job's highest.",
            "{who}的 AI Core 频率最多比作业中的最高频率低 {value:percent}。",
        ),
        (
            "Look at power and temperature: npu-smi info -t power, -t temp.",
            "检查功耗与温度：npu-smi info -t power、-t temp。",
        ),
    ),
    "memory_beside_peers": (
        (
            "Up to {value:percent} more memory than the median of their stage is reserved on {who}.",
            "{who}预留的内存最多比同 stage 的中位数多 {value:percent}。",
        ),
        (
            "Compare batch sizes, recomputation and fragmentation of these ranks with the others.",
            "将这些卡的 batch 大小、重计算和内存碎片与其他卡对比。",
        ),
    ),
    "memory_full": (
        (
            "On {who} the planned peak is up to {value:percent} of the device's memory.",
            "{who}的理论内存峰值最多占设备内存的 {value:percent}。",
        ),
        (
            "Recompute, or shard more: there is little room for fragmentation.",
            "使用重计算或更细的切分：留给内存碎片的空间很少。",
        ),
    ),
    "input_queue": (
        (
            "On {who} a queue of the input pipeline is up to {value:percent} empty.",
            "{who}上数据处理流水线的队列最多空闲 {value:percent}。",
        ),
        (
            "The operation in front of the first empty queue is the bottleneck: give it more workers.",
            "第一个空队列之前的操作是瓶颈：增加其 worker 数。",
        ),
    ),
    "queue_empty": (
        (
            "On {who} up to {value:percent} of the steps found the host's queue of batches empty.",
            "{who}上最多 {value:percent} 的步发现主机侧 batch 队列为空。",
        ),
        (
            "Data processing is too slow: more workers, offloaded or cached operations.",
            "数据处理过慢：增加 worker，使用异构加速或缓存。",
        ),
    ),
    "next_empty": (
        (
            "On {who} up to {value:percent} of the fetches found no batch on the device, though the host "
            "had some.",
            "{who}上最多 {value:percent} 的取数在设备上没有 batch，而主机侧有数据。",
        ),
        (
            "The transfer to the device is too slow: look at the size of batches and at the host's memory "
            "and PCIe.",
            "向设备传输过慢：检查 batch 大小、主机内存与 PCIe。",
        ),
    ),
    "cpu_busy": (
        (
            "On {who} the host's processors are busy for up to {value:percent} of the time.",
            "{who}的主机 CPU 最多有 {value:percent} 的时间处于忙碌。",
        ),
        (
            "Fewer workers a process, processes bound to their own cores, or more cores.",
            "减少每个进程的 worker、进程绑核，或增加 CPU 核。",
        ),
    ),
    "late_launches": (
        (
            "On {who} up to {value:percent} of the kernels start within 50 µs of their launch: the device "
            "waits for the host (upright HostToDevice lines).",
            "{who}上最多 {value:percent} 的 kernel 在下发后 50 µs 内开始：设备在等待主机"
            "（HostToDevice 连线近乎垂直）。",
        ),
        (
            "Fuse small operators, bind processes to cores, TASK_QUEUE_ENABLE=2.",
            "融合小算子、进程绑核，设置 TASK_QUEUE_ENABLE=2。",
        ),
    ),
    "sent_again": (
        (
            "On {who} up to {value:.0f} communication operators were sent again.",
            "{who}上最多有 {value:.0f} 个通信算子发生重传。",
        ),
        (
            "Look at the network's error counters: hccn_tool -i N -stat -g.",
            "检查网络错误计数：hccn_tool -i N -stat -g。",
        ),
    ),
    "other_environment": (
        (
            "On {who} up to {value:.0f} environment variables differ from those of most ranks.",
            "{who}上最多有 {value:.0f} 个环境变量与多数卡不同。",
        ),
        (
            "Compare them (table environment), and start all ranks with the same.",
            "对比这些变量（environment 表），并让所有卡使用相同的设置。",
        ),
    ),
    "blocking_launch": (
        (
            "On {who} ASCEND_LAUNCH_BLOCKING=1: the host waits for each operator.",
            "{who}设置了 ASCEND_LAUNCH_BLOCKING=1：主机等待每个算子完成。",
        ),
        ("Unset it; it is for finding errors.", "取消该设置：它只用于定位错误。"),
    ),
    "log_level": (
        (
            "On {who} ASCEND_GLOBAL_LOG_LEVEL is debug or info: the host writes logs while it dispatches.",
            "{who}的 ASCEND_GLOBAL_LOG_LEVEL 为 debug 或 info：主机在下发的同时写日志。",
        ),
        ("Set it to 3 (errors).", "设为 3（error）。"),
    ),
}


def rule_sentences(name: RuleName, ranks: tuple[int, ...], value: float) -> tuple[Phrase, Phrase]:
    """Return what a rule says of these ranks, and what to check next."""
    one, several = (
        Phrase(f"rank {ranks[0]}", f"卡 {ranks[0]}"),
        Phrase(f"{len(ranks)} ranks", f"{len(ranks)} 张卡"),
    )
    said, check = RULES[name]
    values = {"who": one if len(ranks) == 1 else several, "value": value}
    return fill(said, values), fill(check, values)


def rule_of(fact: Fact) -> tuple[Phrase, Phrase]:
    """Return the same of a fact `rule_holds`."""
    values: dict[str, Any] = dict(fact.values)
    return rule_sentences(values["rule"], values["ranks"], values["value"])
