"""Chinese of the help of cluster-collect."""

from __future__ import annotations

from collections.abc import Mapping

COLLECT: Mapping[str, str] = {
    "Collects the profiler data of all hosts of a job over SSH into one run directory.": (
        "通过 SSH 将一个作业所有主机的采集数据收集到一个运行目录。"
    ),
    "examples:\n"
    "  cluster-collect --inventory hosts.yaml --check\n"
    "  cluster-collect --inventory hosts.yaml --output run1\n"
    "  cluster-collect --hosts 'node[01-16]' --profiler-root /data/prof --rank-table hccl.json\n"
    "  cluster-collect --like run1 --ranks suspects --what full\n"
    "  cluster-collect --live 3 --inventory hosts.yaml\n"
    "\n"
    "exit codes:\n"
    "  0    done, everything asked for is there\n"
    "  1    could not do it\n"
    "  2    wrong usage\n"
    "  3    done, but hosts, ranks or files are missing; the result says which\n"
    "  130  interrupted; call it again with the same --output and it goes on\n": (
        "示例：\n"
        "  cluster-collect --inventory hosts.yaml --check\n"
        "  cluster-collect --inventory hosts.yaml --output run1\n"
        "  cluster-collect --hosts 'node[01-16]' --profiler-root /data/prof --rank-table hccl.json\n"
        "  cluster-collect --like run1 --ranks suspects --what full\n"
        "  cluster-collect --live 3 --inventory hosts.yaml\n"
        "\n"
        "退出码：\n"
        "  0    完成，所要的内容齐全\n"
        "  1    无法完成\n"
        "  2    用法错误\n"
        "  3    完成，但有主机、卡或文件缺失；结果中会指明\n"
        "  130  被中断；以相同的 --output 再次调用即可继续\n"
    ),
    "which hosts": "哪些主机",
    "what, and where to": "采集什么，写到哪里",
    "some ranks": "部分卡",
    "capturing a job that runs (--live)": "采集正在运行的作业（--live）",
    "reading on the hosts (--what columns)": "在主机上读取（--what columns）",
    "limits": "上限",
    "output": "输出",
    "hosts and how to reach them: this project's YAML, an inventory of Ansible, a list of hosts, a "
    "rank table, or an r1.x account file": (
        "主机及其连接方式：本项目的 YAML、Ansible 主机清单、主机列表、rank table，或 r1.x 的 account 文件"
    ),
    "hosts instead of the inventory's: 'node[01-16]', or ^FILE": (
        "替代主机清单的主机：'node[01-16]'，或 ^FILE"
    ),
    "only these hosts: 'node[01-04]', '@group', '*!node07'": (
        "只要这些主机：'node[01-04]'、'@group'、'*!node07'"
    ),
    "rank table of the job, over the inventory's; without other hosts, its hosts are collected from": (
        "作业的 rank table，优先于主机清单中的；没有给出其他主机时，从其中的主机采集"
    ),
    "directory of the profiler data on the hosts": "主机上采集数据的目录",
    "login name": "登录名",
    "any key of the inventory's defaults, for example --set jump=bastion.example": (
        "主机清单 defaults 中的任意键，例如 --set jump=bastion.example"
    ),
    "ask for one password for all hosts": "询问一个口令，用于所有主机",
    "ask for one passphrase for all private keys, named or not": (
        "询问一个密钥口令，用于所有私钥，无论是否指定"
    ),
    "store keys of hosts never seen before; a changed key is always refused": (
        "保存首次遇到的主机的密钥；密钥变更一律拒绝"
    ),
    "run directory (default: run-<date>-<time>)": "运行目录（默认：run-<日期>-<时间>）",
    "'analysis' (what cluster-analyse reads, the default), 'columns' (the same, large files reduced "
    "on their hosts), 'full', or globs of paths; globs after one of the three narrow it: analysis "
    "'job-101/*'": (
        "'analysis'（cluster-analyse 读取的内容，默认）、'columns'（内容相同，"
        "大文件在主机上归约）、'full'，或路径通配；三者之后的通配缩小其范围：analysis 'job-101/*'"
    ),
    "leave out what matches by its path, its name or a directory above it": "按路径、名称或上级目录排除",
    "all captures (the default), the newest of each rank, or those of a NAME; NAME may be a glob": (
        "所有采集（默认）、每张卡最新的，或指定 NAME 的采集；NAME 可为通配"
    ),
    "captures that were written later: 2025-01-31, 2025-01-31T12:00, 90m, 12h, 3d, or @SECONDS": (
        "在此之后写出的采集：2025-01-31、2025-01-31T12:00、90m、12h、3d 或 @SECONDS"
    ),
    "on the wire (default: %(default)s, what the host has)": (
        "传输中的压缩（默认：%(default)s，以主机所有为准）"
    ),
    "hash every file on its host and here, those of earlier calls too, and fetch what differs": (
        "在主机和本机对每个文件计算哈希，包括以前调用的文件，并采集不一致的"
    ),
    "show what would be copied, and how much": "显示将复制什么、有多大",
    "log in and look at each host; copy nothing": "登录并查看每台主机；不复制任何内容",
    "from the hosts of this run directory, reached as for it, and of the same captures; into it, "
    "unless --output names another": (
        "从该运行目录的主机采集，连接方式和采集内容与之相同；写入其中，除非 --output 另行指定"
    ),
    "only these ranks: 0-7,13, or 'suspects': those that the findings of --like RUN name, and peers "
    "to compare with": ("只要这些卡：0-7,13，或 'suspects'：--like RUN 的发现项点名的卡及用于对比的卡"),
    "findings.json of --ranks suspects, where it is not in the run directory's own output folder": (
        "--ranks suspects 所用的 findings.json，当它不在运行目录自己的输出目录中时"
    ),
    "of these ranks everything, whole, where the others come as columns or for the analysis alone": (
        "这些卡完整采集，其他卡以列或仅供分析的内容采集"
    ),
    "capture N steps of the running job on all hosts first": "先在所有主机上采集正在运行的作业的 N 步",
    "how the job is asked (default: as it was started)": "以何种方式请求作业（默认：按其启动方式）",
    "which job: its Slurm number, a process, or its directory": (
        "哪个作业：其 Slurm 作业号、某个进程，或其目录"
    ),
    "'all' hosts (the default), or 'quorum N': at least so many, and the others are named": (
        "'all' 为所有主机（默认），或 'quorum N'：至少 N 台，其余会列出"
    ),
    "all ranks at Level0, then the suspects and peers at Level1": (
        "所有卡以 Level0 采集，再对嫌疑卡和对比卡以 Level1 采集"
    ),
    "Level0, Level1 or Level2 (default: %(default)s)": "Level0、Level1 或 Level2（默认：%(default)s）",
    "where the job writes (default: the profiler root)": "作业写出的位置（默认：profiler_root）",
    "who parses: a process of its own on the 'host' (the default), the 'job', or nobody": (
        "由谁解析：'host' 上的独立进程（默认）、'job'，或不解析"
    ),
    "longest time until it is parsed": "等待解析完成的最长时间",
    "port of dynolog on the hosts (1778)": "主机上 dynolog 的端口（1778）",
    "certificates of its client on this machine: TLS": "本机上其客户端的证书：TLS",
    "training log on the hosts that tells steps (mindspore)": "主机上记录步数的训练日志（mindspore）",
    "what stands before and around the number in it": "其中步数前后的文字",
    "do so again and again: 30m, 2h": "反复进行：30m、2h",
    "captures that --every keeps (%(default)s)": "--every 保留的采集数（%(default)s）",
    "file with an address: told when a verdict changes": "含有地址的文件：结论变化时通知",
    "as of cluster-hook (default: %(default)s)": "与 cluster-hook 相同（默认：%(default)s）",
    "directory of node_exporter's textfile collector": "node_exporter textfile collector 的目录",
    "print the program that would run on the hosts, and end": "打印将在主机上运行的程序并退出",
    "run it for a login that is root, too": "登录用户为 root 时也运行",
    "run it while a process uses the host's devices, too": "有进程在使用主机的设备时也运行",
    "memory of each of its processes; a file that needs more travels as it is (default: 2Gi)": (
        "其每个进程的内存；需要更多内存的文件按原样传输（默认：2Gi）"
    ),
    "longest time for reducing on a host; what is not done then travels as it is (default: %(default)g)": (
        "在一台主机上归约的最长时间；未完成的按原样传输（默认：%(default)g）"
    ),
    "hosts that send at a time (default: %(default)s)": "同时发送的主机数（默认：%(default)s）",
    "tries a host, where trying again may help (default: %(default)s)": (
        "重试可能有用时，每台主机的尝试次数（默认：%(default)s）"
    ),
    "bytes a second in all, like 200M": "总的每秒字节数，例如 200M",
    "bytes a second of each host": "每台主机的每秒字节数",
    "space to leave free on this disk (default: 256Mi)": "本磁盘上保留的空间（默认：256Mi）",
    "a host that sends less in a second is taken for one that hangs (default: %(default)s)": (
        "一秒内发送少于此的主机视为挂起（默认：%(default)s）"
    ),
    "longest time for each host, without queues; 0: without end (default: 400, with --live 3600)": (
        "每台主机的最长时间，不含排队；0：不限（默认：400，使用 --live 时为 3600）"
    ),
    "longest time for all hosts (default: none)": "所有主机的最长时间（默认：不限）",
    "a host that brings nothing for so long, in all attempts, is left (default: %(default)g)": (
        "在所有尝试中这么久没有任何内容的主机会被放弃（默认：%(default)g）"
    ),
    "longest wait for a connection (default: %(default)g)": "等待连接的最长时间（默认：%(default)g）",
    "longest wait for logging in (default: %(default)g)": "等待登录的最长时间（默认：%(default)g）",
    "longest wait for the prepare command (default: %(default)g)": (
        "等待 prepare 命令的最长时间（默认：%(default)g）"
    ),
    "longest wait for a name of a listing (default: %(default)g)": (
        "等待文件列表中一个名称的最长时间（默认：%(default)g）"
    ),
    "longest wait for content (default: %(default)g)": "等待内容的最长时间（默认：%(default)g）",
    "write the result to stdout as JSON": "将结果以 JSON 写到标准输出",
    "language of the result and of progress, not of JSON (default: that of LC_ALL or LANG)": (
        "结果和进度的语言，JSON 除外（默认取自 LC_ALL 或 LANG）"
    ),
    "reasons and advices name no server, as in manifest.json; for logs that others read": (
        "原因和建议中不出现服务器名，与 manifest.json 相同；用于他人会看到的日志"
    ),
    "say more; -vv names every file": "输出更多信息；-vv 列出每个文件",
    "no progress; only warnings, errors and the result": "不显示进度；只有警告、错误和结果",
}
