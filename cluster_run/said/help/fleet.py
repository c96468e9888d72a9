"""Chinese of the help of cluster-fleet and cluster-act."""

from __future__ import annotations

from collections.abc import Mapping

FLEET: Mapping[str, str] = {
    "Says what is to be done about slow devices and hosts, and does it with --apply.": (
        "说明应如何处理慢设备和慢主机；加 --apply 才会执行。"
    ),
    "exit codes:\n"
    "  0    nothing is to be done, or all of it is\n"
    "  1    could not do it\n"
    "  2    wrong usage\n"
    "  3    a part could not be done; the probe leaves it open\n"
    "  4    there is something to do (without --apply); the suspect is slow (--probe)\n"
    "  130  interrupted\n": (
        "退出码：\n"
        "  0    没有需要处理的，或已全部处理\n"
        "  1    无法完成\n"
        "  2    用法错误\n"
        "  3    有一部分未能处理；探测无法判断\n"
        "  4    有需要处理的（未加 --apply）；嫌疑设备确实慢（--probe）\n"
        "  130  被中断\n"
    ),
    "what to act on": "处理对象",
    "how": "方式",
    "the probe": "探测",
    "whom the alarms of this run name": "该运行的告警所点名的",
    "who is slow over many runs": "多次运行中变慢的",
    "take back what was done to a node, or `all`": "撤销对某节点的处理，或 `all`",
    "all that was done": "已做过的全部处理",
    "compare two devices: node017:5 node018:5": "比较两个设备：node017:5 node018:5",
    "the fleet's database, which keeps the log of actions; $CLUSTER_FLEET by default": (
        "机群数据库，操作日志也保存在其中；默认为 $CLUSTER_FLEET"
    ),
    "language, not of the log (default: that of LC_ALL or LANG)": (
        "语言，日志除外（默认取自 LC_ALL 或 LANG）"
    ),
    "(default: slurm)": "（默认：slurm）",
    "do it": "执行",
    "nodes a day (default 2)": "每天处理的节点数（默认 2）",
    "one run is enough": "一次运行即足够",
    "slurm: also nodes on which jobs run, which end first": ("slurm：也处理有作业在运行的节点，等其先结束"),
    "keep a list of the nodes acted on": "保存已处理节点的清单",
    "mindcluster: the fault's sender": "mindcluster：故障的上报者",
    "mindcluster: of the ConfigMap": "mindcluster：ConfigMap 的命名空间",
    "mindcluster: the site's publicCustomization.json": "mindcluster：站点的 publicCustomization.json",
    "command: what is called with apply or undo": "command：以 apply 或 undo 调用的程序",
    "prints a time last; {device} is its number": "最后打印一个时间；{device} 为设备号",
    "how nodes are reached": "如何到达节点",
    "(default 120)": "（默认 120）",
    "Remembers what runs say of devices, hosts and links: which are slow since when.": (
        "记住各次运行对设备、主机和链路的判断：哪些从何时起变慢。"
    ),
    "exit codes:\n"
    "  0    done, evidence complete\n"
    "  1    could not do it\n"
    "  2    wrong usage\n"
    "  3    add: the run is there already\n"
    "  4    status, show: a device or host is slow\n"
    "  130  interrupted\n": (
        "退出码：\n"
        "  0    完成，证据完整\n"
        "  1    无法完成\n"
        "  2    用法错误\n"
        "  3    add：该运行已在其中\n"
        "  4    status、show：有设备或主机变慢\n"
        "  130  被中断\n"
    ),
    "commands": "命令",
    "remember an analysed run; the same run twice counts once": (
        "记住一次已分析的运行；同一运行两次只算一次"
    ),
    "who is slow since when, the costliest first": "谁从何时起变慢，损失最大的在前",
    "all that is known of a device or host": "某个设备或主机的全部记录",
    "write all runs to a file, names and keys as hashes": "将所有运行写入文件，名称和键写为哈希",
    "add the runs of such a file": "加入此类文件中的运行",
    "delete old runs, and devices that no run has left": "删除较早的运行，以及不再有运行的设备",
    "a file, or the URL of a PostgreSQL database; $CLUSTER_FLEET by default": (
        "文件，或 PostgreSQL 数据库的 URL；默认为 $CLUSTER_FLEET"
    ),
    "run directory that cluster-analyse has read": "cluster-analyse 读过的运行目录",
    "where its findings and tables are": "其发现项和表所在的位置",
    "how long its job ran (default 1)": "其作业运行了多久（默认 1）",
    "call hosts as the rank table does; else by their own name": (
        "按 rank table 称呼主机；否则用主机自己的名称"
    ),
    "print nothing": "不输出任何内容",
    "for programs": "供程序使用",
    "language, not of JSON (default: that of LC_ALL or LANG)": ("语言，JSON 除外（默认取自 LC_ALL 或 LANG）"),
    "write a page, too": "同时写出页面",
    "write metrics for Prometheus, too": "同时写出 Prometheus 指标",
    "'device 5 of node017', a host's name, or a key": "'device 5 of node017'、主机名，或键",
    "the same salt gives the same hashes; random by default": "相同的盐得到相同的哈希；默认随机",
    "leave names and keys as they are": "名称和键保持原样",
    "as 2026-05-31, UTC": "例如 2026-05-31，UTC",
}
