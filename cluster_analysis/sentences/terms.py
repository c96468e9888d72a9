"""Words of the field in both languages. The Chinese ones are those of MindStudio Insight and CANN."""

from __future__ import annotations

from collections.abc import Mapping

#: Roles of groups (the words follow "each"), and kinds of records in files.
TERMS: Mapping[str, tuple[str, str]] = {
    "tp": ("tensor-parallel group", "张量并行通信域"),
    "pp": ("pipeline", "流水线并行通信域"),
    "dp": ("data-parallel group", "数据并行通信域"),
    "cp": ("context-parallel group", "上下文并行通信域"),
    "ep": ("expert-parallel group", "专家并行通信域"),
    "world": ("group of all ranks", "全局通信域"),
    "unknown": ("group of unknown purpose", "用途未知的通信域"),
    "roce_resent_packets_count": ("packets sent again", "重传报文"),
    "roce_bad_packets_count": ("bad packets", "坏包"),
    "nic_errors_count": ("errors", "错误"),
    "nic_dropped_count": ("dropped packets", "丢包"),
    "mac_pause_frames_count": ("frames that ask for a pause (PFC)", "PFC 帧"),
    "roce_congestion_packets_count": ("notices of congestion (CNP)", "拥塞通知（CNP）"),
    "failed": ("failed", "失败"),
    "unstable": ("unstable", "不稳定"),
    "no name": ("not all captures name one", "并非所有采集都注明主机"),
    "one device twice": (
        "by their names one host would have a device twice",
        "按名称会有一台主机出现重复设备",
    ),
    "names of processes": ("their names are those of processes", "名称是进程名"),
}
#: Ranks that do the same work: what they are part of.
ROLES: Mapping[str, tuple[str, str]] = {
    "stage": ("stage {}", "流水线阶段 {}"),
    "group": ("group {}", "第 {} 组"),
    "job": ("the job", "本作业"),
}
#: Measures that the fleet compares over runs; the word is that of a transport.
METRICS: Mapping[str, tuple[str, str]] = {
    "compute": ("computing time", "计算时间"),
    "dispatch": ("of the step idle beyond others", "每步比其他主机多空闲"),
    "input": ("of the step waiting for input beyond others", "每步比其他主机多等待输入"),
    "link": ("time on {} links", "{} 链路时间"),
}
#: Healthy, degraded and unknown differ by sign too: colour alone is not enough.
VERDICT_SIGNS = {"healthy": "✓", "degraded": "▲", "unknown": "?"}
#: Kind of a finding, in two words.
KINDS: Mapping[str, tuple[str, str]] = {
    "slow_rank": ("slow rank", "慢卡"),
    "slow_host": ("slow host", "慢节点"),
    "slow_link": ("slow link", "慢链路"),
    "slow_nic": ("slow network card", "慢网卡"),
    "slow_port": ("slow port", "慢端口"),
    "slow_host_pair": ("slow pair of hosts", "节点间链路慢"),
    "slow_uplink": ("slow uplink", "慢上行链路"),
    "stage_imbalance": ("uneven stages", "流水线阶段不均衡"),
    "data_imbalance": ("uneven data", "数据不均衡"),
    "expert_imbalance": ("uneven experts", "专家负载不均衡"),
    "small_packets": ("small packets", "小通信包"),
    "exposed_communication": ("exposed communication", "未被计算掩盖的通信"),
    "retransmission": ("retransmissions", "重传"),
    "periodic_pause": ("periodic pause", "周期性停顿"),
    "scattered_pauses": ("scattered pauses", "零散停顿"),
    "input_bound": ("input bound", "数据输入瓶颈"),
    "host_bound": ("host bound", "主机下发瓶颈"),
}
CAUSES: Mapping[str, tuple[str, str]] = {
    "compute": ("compute", "计算"),
    "dispatch": ("dispatch", "下发"),
    "input": ("input", "数据输入"),
    "bandwidth": ("bandwidth", "带宽"),
    "unknown": ("unknown", "未知"),
}
PATTERNS: Mapping[str, tuple[str, str]] = {
    "persistent": ("persistent", "持续"),
    "intermittent": ("intermittent", "间歇"),
    "transient": ("transient", "短暂"),
    "trend": ("trend", "逐渐加重"),
}
CONFIDENCES: Mapping[str, tuple[str, str]] = {
    "high": ("high", "高"),
    "medium": ("medium", "中"),
    "low": ("low", "低"),
}
#: Causes of a step's loss.
LOST: Mapping[str, tuple[str, str]] = {
    "slow_devices": ("slow ranks and hosts", "慢卡与慢节点"),
    "stages": ("uneven stages", "流水线阶段不均衡"),
    "samples": ("uneven data", "数据不均衡"),
    "experts": ("uneven experts", "专家负载不均衡"),
    "communication": ("the network", "网络"),
    "pauses": ("pauses", "停顿"),
    "other": ("variation without a single cause", "无单一原因的波动"),
}
