"""Chinese of what was done to a node, or why it was not done."""

from __future__ import annotations

from collections.abc import Mapping

ACTING: Mapping[str, str] = {
    "{node} drained": "{node} 已排空",
    "{node} is drained already": "{node} 此前已排空",
    "{node} is drained by somebody else: {what}": "{node} 已被他人排空：{what}",
    "{node} is drained for another reason: {what}": "{node} 因其他原因被排空：{what}",
    "{node} is not drained any more": "{node} 已不处于排空状态",
    "{node} resumed": "{node} 已恢复调度",
    "jobs run on {node} (call it again when they have ended, or with --drain-busy)": (
        "{node} 上有作业在运行（请在其结束后再次执行，或使用 --drain-busy）"
    ),
    "Slurm knows no node {node}": "Slurm 不认识节点 {node}",
    "{node} tainted": "{node} 已加污点",
    "{node} is tainted already": "{node} 此前已加污点",
    "{node} is not tainted any more": "{node} 已没有该污点",
    "{node} has the taint {name} already": "{node} 已有污点 {name}",
    "{node} has the taint {name}, which is not of this device": "{node} 的污点 {name} 不属于该设备",
    "{node}: taint taken away": "{node}：污点已移除",
    "{node} has {name} already: {what}": "{node} 已有 {name}：{what}",
    "{node} has {name} for another reason: {what}": "{node} 因其他原因有 {name}：{what}",
    "{node} has no {name} any more": "{node} 已没有 {name}",
    "occur of {name} told; whether ClusterD took it says its ConfigMap cluster-info-cm": (
        "已上报故障 {name}；ClusterD 是否接受，见其 ConfigMap cluster-info-cm"
    ),
    "recover of {name} told; whether ClusterD took it says its ConfigMap cluster-info-cm": (
        "已上报 {name} 恢复；ClusterD 是否接受，见其 ConfigMap cluster-info-cm"
    ),
    "{name} cannot be started: {why}": "无法启动 {name}：{why}",
    "{name} did not end within {seconds} s": "{name} 未在 {seconds} s 内结束",
    "{name} ended with {code}: {why}": "{name} 以代码 {code} 结束：{why}",
    "it said nothing": "没有输出",
}
