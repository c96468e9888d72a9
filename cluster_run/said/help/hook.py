"""Chinese of the help of cluster-hook."""

from __future__ import annotations

from collections.abc import Mapping

HOOK: Mapping[str, str] = {
    "Collects and analyses the profiler data of a job after it ended.": (
        "在作业结束后收集并分析其采集数据。"
    ),
    "exit codes:\n"
    "  0    done, evidence complete\n"
    "  1    could not do it\n"
    "  2    wrong usage\n"
    "  3    done, but hosts, ranks or files are missing or unreadable; drain: a request was given "
    "up; check: it could not tell\n"
    "  4    done, and there is a finding at or above --fail-on\n"
    "  130  interrupted\n": (
        "退出码：\n"
        "  0    完成，证据完整\n"
        "  1    无法完成\n"
        "  2    用法错误\n"
        "  3    完成，但有主机、卡或文件缺失或不可读；drain：放弃了某个请求；check：无法判断\n"
        "  4    完成，且有达到 --fail-on 的发现项\n"
        "  130  被中断\n"
    ),
    "submit a job, and the post-job that collects and analyses when it ended": (
        "提交作业，以及在其结束后收集并分析的后续作业"
    ),
    "collect and analyse a job that ended; this is what the post-job runs": (
        "收集并分析一个已结束的作业；后续作业运行的就是它"
    ),
    "work off the requests that the epilog dropped; for cron or a systemd timer": (
        "处理 epilog 留下的请求；用于 cron 或 systemd timer"
    ),
    "say whether slurmctld runs the epilog, and whether the drain works": (
        "说明 slurmctld 是否运行 epilog，drain 是否正常"
    ),
    "analyse the Kubernetes jobs that ended; this is what the CronJob runs": (
        "分析已结束的 Kubernetes 作业；CronJob 运行的就是它"
    ),
    "collect what Kubernetes jobs left on this node's own disk; this is what the DaemonSet runs": (
        "收集 Kubernetes 作业留在本节点磁盘上的数据；DaemonSet 运行的就是它"
    ),
    "Submits a job as sbatch does, and a post-job that runs when it ended, however it ended. "
    "Options of cluster-hook come before the script, options of sbatch after it, arguments of the "
    "script after --.": (
        "像 sbatch 一样提交作业，并提交一个在其以任何方式结束后运行的后续作业。cluster-hook "
        "的选项写在脚本之前，sbatch 的选项写在脚本之后，脚本的参数写在 -- 之后。"
    ),
    "analysing": "分析",
    "collecting": "收集",
    "telling people": "通知",
    "the same as sbatch --comment=profile_dir=DIR": "等同于 sbatch --comment=profile_dir=DIR",
    "nodes of the post-job, for --scheduler srun": "后续作业的节点数，用于 --scheduler srun",
    "an sbatch option of the post-job; repeatable": "后续作业的 sbatch 选项；可重复",
    "print the number of the job and nothing else": "只打印作业号",
    "print JSON, one line a submission": "打印 JSON，每次提交一行",
    "where the analysis runs, as cluster-analyse takes it: auto, processes, slurm, tls://… "
    "(default: %(default)s)": (
        "在哪里分析，取值与 cluster-analyse 相同：auto、processes、slurm、tls://…（默认：%(default)s）"
    ),
    "real host names in the results, not only their numbers": "结果中使用真实主机名，而不只是编号",
    "end with code 4 when there is such a finding": "有此类发现项时以 4 退出",
    "seconds that one job may take to analyse, and as many to collect and to fetch raw files "
    "(default: %(default)g)": ("一个作业的分析最长秒数，收集和获取原始文件也各限此数（默认：%(default)g）"),
    "what to collect, as cluster-collect takes it; may be repeated (default: columns, reduced on "
    "the nodes; a node that cannot do that sends its files as they are)": (
        "收集什么，取值与 cluster-collect 相同；可重复（默认：columns，在节点上归约；"
        "做不到的节点按原样发送文件）"
    ),
    "fetch everything of these ranks: 0-7,13, or 'suspects', after the analysis: those that the "
    "findings name, and peers to compare with": (
        "完整采集这些卡：0-7,13，或在分析之后用 'suspects'：发现项点名的卡及用于对比的卡"
    ),
    "a further option of cluster-collect, like --collect-arg=--bandwidth=200M; repeatable": (
        "cluster-collect 的其他选项，例如 --collect-arg=--bandwidth=200M；可重复"
    ),
    "an inventory whose `defaults` (user, port, jump, …) are used for the job's hosts": (
        "一个主机清单，其 `defaults`（user、port、jump 等）用于作业的主机"
    ),
    "with --scheduler srun, which starts Dask on the post-job's nodes: its network, like ib0": (
        "与 --scheduler srun 合用（在后续作业的节点上启动 Dask）：其网络，例如 ib0"
    ),
    "when the webhook is called: findings of severity warning or worse, also problems, always, "
    "never (default: %(default)s)": (
        "何时调用 webhook：warning 及以上级别的发现项、也包括问题、总是、从不（默认：%(default)s）"
    ),
    "a file with the webhook's address (default: the environment variable CLUSTER_HOOK_WEBHOOK_URL)": (
        "含 webhook 地址的文件（默认：环境变量 CLUSTER_HOOK_WEBHOOK_URL）"
    ),
    "who reads the message (default: json)": "消息的接收方（默认：json）",
    "language of messages and of the line in the job's log (default: that of LC_ALL or LANG)": (
        "消息以及作业日志中那一行的语言（默认取自 LC_ALL 或 LANG）"
    ),
    "also put the metrics there: the directory of node_exporter's textfile collector": (
        "同时将指标写到此处：node_exporter textfile collector 的目录"
    ),
    "a job's metrics, and the alerts on them, end after this long (default: %(default)g)": (
        "作业的指标及其告警在这么久之后结束（默认：%(default)g）"
    ),
    "the job's script": "作业脚本",
    "Collects and analyses a job that ended. The job's comment says where its data are: "
    "profile_dir=DIR[,profile_results=DIR][,profile_via=auto|shared|ssh|srun][,rank_table=FILE].": (
        "收集并分析一个已结束的作业。作业的 comment "
        "说明其数据位置：profile_dir=DIR[,profile_results=DIR][,profile_via=auto|shared|ssh|srun][,rank_table=FILE]。"
    ),
    "the job's number": "作业号",
    "print JSON, one line a job: its outcome": "打印 JSON，每个作业一行：其结果",
    "Works off the requests in the spool, each in the name of the job's user. May be started at "
    "any time: a second drain ends at once, a finished request is not done again.": (
        "处理 spool 中的请求，各以作业用户的身份进行。可随时启动：第二个 drain 会立即结束，"
        "已完成的请求不会重做。"
    ),
    "default: %(default)s": "默认：%(default)s",
    "how often a request is tried before it is given up (default: %(default)s)": (
        "请求在放弃之前的尝试次数（默认：%(default)s）"
    ),
    "seconds before it is tried again (default: %(default)g)": "再次尝试之前的秒数（默认：%(default)g）",
    "older requests are given up (default: %(default)g)": "更早的请求会被放弃（默认：%(default)g）",
    "how long the records of finished requests are kept (default: %(default)g)": (
        "已完成请求的记录保留多久（默认：%(default)g）"
    ),
    "print JSON, one line a request": "打印 JSON，每个请求一行",
    "Says whether jobs that ended will be analysed on this site: whether slurmctld runs the "
    "epilog, whether it can drop requests, and whether a drain works them off.": (
        "说明本站点上结束的作业是否会被分析：slurmctld 是否运行 epilog、能否留下请求、drain 是否处理它们。"
    ),
    "submit a small job with a slow rank, and follow it: epilog, drain, analysis, message; takes "
    "as long as the drain lets it wait": (
        "提交一个带慢卡的小作业并跟踪全程：epilog、drain、分析、消息；耗时取决于 drain 让它等待多久"
    ),
    "for root: whose job it is; an ordinary user who may submit (default: who called sudo)": (
        "以 root 运行时：作业属于谁；可提交作业的普通用户（默认：调用 sudo 的用户）"
    ),
    "where it writes: a directory of that user that nodes and drain see (default: the home)": (
        "其写出位置：节点和 drain 都能看到的该用户目录（默认：home）"
    ),
    "print JSON, one line an answer": "打印 JSON，每个答案一行",
    "Analyses each training job (batch Job, Volcano job, AscendJob) that carries the label and has "
    "ended, and annotates it with the verdict. The exit code is the sweep's, not the jobs'.": (
        "分析每个带有该标签且已结束的训练作业（批处理 Job、Volcano 作业、AscendJob），并将结论写入其 "
        "annotation。退出码是 sweep 的，而不是作业的。"
    ),
    "the volume with the data": "存放数据的卷",
    "the volume for the results": "存放结果的卷",
    "default: the pod's own": "默认：pod 自己的",
    "which jobs (default: %(default)s)": "哪些作业（默认：%(default)s）",
    "how often a job is tried (default: %(default)s)": "一个作业的尝试次数（默认：%(default)s）",
    "seconds without a change before data are read (default: %(default)g)": (
        "读取数据前保持不变的秒数（默认：%(default)g）"
    ),
    "begin no job that might not end by then (default: %(default)g)": (
        "不开始届时可能无法结束的作业（默认：%(default)g）"
    ),
    "where people reach the results volume; the job is annotated with its report's address": (
        "人们访问结果卷的地址；作业的 annotation 会写入其报告地址"
    ),
    "the directory shared with the collectors on the nodes, for data on the nodes' own disks": (
        "与各节点收集程序共享的目录，用于节点自己磁盘上的数据"
    ),
    "go on without a node whose collector is silent for so long (default: %(default)g)": (
        "不再等待收集程序这么久没有响应的节点（默认：%(default)g）"
    ),
    "with --node-exchange: after the verdict fetch everything of the ranks that the findings name, "
    "and of peers to compare with; a later sweep lays it beside the results, in `raw`": (
        "与 --node-exchange 合用：得出结论后完整采集发现项点名的卡及对比卡；之后的 sweep "
        "将其放在结果旁的 `raw` 中"
    ),
    "outside of a pod: what `kubectl proxy` listens on (default: the pod's)": (
        "在 pod 之外：`kubectl proxy` 监听的地址（默认：pod 的）"
    ),
    "print JSON, one line a job": "打印 JSON，每个作业一行",
    "Copies the profiles that a sweep asks for from this node to the exchange directory, which "
    "sweep and nodes share. It needs no access to the API.": (
        "将 sweep 请求的采集数据从本节点复制到与节点共享的交换目录。不需要访问 API。"
    ),
    "this node's name (default: $NODE_NAME)": "本节点的名称（默认：$NODE_NAME）",
    "where the node's directory is mounted": "节点目录的挂载位置",
    "the sweep's --node-exchange": "sweep 的 --node-exchange",
    "what to collect, as cluster-collect takes it (default: %(default)s)": (
        "收集什么，取值与 cluster-collect 相同（默认：%(default)s）"
    ),
    "seconds between two looks for requests (default: %(default)g)": (
        "两次查看请求之间的秒数（默认：%(default)g）"
    ),
    "seconds that one job may take (default: %(default)g)": "一个作业可用的秒数（默认：%(default)g）",
    "look once, and end": "只查看一次并退出",
}
