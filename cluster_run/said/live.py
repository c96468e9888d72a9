"""Chinese of a capture of a running job: whose job it is, which steps, who is not in it and why."""

from __future__ import annotations

from collections.abc import Mapping

LIVE: Mapping[str, str] = {
    # What it would do, does and did.
    "{job}: {n} ranks on {m} of {hosts} hosts, by way of {ways}": (
        "{job}：{hosts} 台主机中 {m} 台上的 {n} 张卡，方式：{ways}"
    ),
    "would capture {n} steps of about {size} after {m} to warm up: the job runs captured for {free}, {room} "
    "from now": (
        "将采集 {n} 步（每步约 {size}），之前预热 {m} 步：作业在采集下运行 {free}，从现在起 {room} 后开始"
    ),
    "would capture {n} steps; how long one takes is not known before the job is asked": (
        "将采集 {n} 步；请求作业之前不知道一步多长"
    ),
    "about {size} on the hosts, as an earlier one took {room} a rank and step": (
        "主机上约 {size}：以前的一次每卡每步为 {room}"
    ),
    "how many bytes is not known: no earlier capture of this command is there to go by": (
        "数据量未知：没有本命令以前的采集可供参考"
    ),
    "nothing was sent": "未发送任何内容",
    "capturing steps {steps} on {of_all}, in about {n} s": "约 {n} s 后在 {of_all} 上采集步 {steps}",
    "{n} of {m} hosts": "{m} 台主机中的 {n} 台",
    "all {n} hosts": "全部 {n} 台主机",
    "{n} of {m} hosts profile: each counts its own iterations from now on": (
        "{m} 台主机中 {n} 台在采集：从现在起各自计数迭代"
    ),
    "{n} of {m} hosts done, waiting for {names}": "{m} 台主机中 {n} 台完成，等待 {names}",
    "{names}: {why}; once more, with more time": "{names}：{why}；延长时间再试一次",
    "captured steps {steps} on {n} of {m} hosts: {size}, the job ran captured for {time}": (
        "在 {m} 台主机中的 {n} 台上采集了步 {steps}：{size}，作业在采集下运行了 {time}"
    ),
    "note: {what}": "说明：{what}",
    "nobody is suspected: there is nothing to zoom to": "没有嫌疑卡：无需进一步采集",
    "the suspects closer: {path}": "嫌疑卡的细节：{path}",
    "the next capture is in {time}: {why}": "下一次采集在 {time} 后：{why}",
    "more would be over {share} of the time": "更多采集会超过时间的 {share}",
    "The job ran captured for {share} of the time.": "作业有 {share} 的时间在采集下运行。",
    "undoing what was begun": "正在撤销已开始的内容",
    "nothing was captured, {why}: {rest}": "未采集任何内容，{why}：{rest}",
    "all hosts are required": "要求全部主机",
    "{n} hosts are required": "要求 {n} 台主机",
    "the same number was another iteration there": "相同的编号在那里是另一次迭代",
    "--require quorum N goes on without some": "--require quorum N 可在缺少部分主机时继续",
    "{run} could not be analysed: {why}": "{run} 无法分析：{why}",
    "{run} could not be analysed, so there is nothing to zoom to: {why}": (
        "{run} 无法分析，因此无法进一步采集：{why}"
    ),
    # Whose job it is.
    "no process that this login can see waits for a capture": "此登录用户可见的进程中没有等待采集的",
    "start the job with these two lines next time: {lines}": "下次请用这两行启动作业：{lines}",
    "several jobs wait for captures here: {jobs}": "这里有多个作业等待采集：{jobs}",
    "name one with --job": "请用 --job 指定一个",
    "name one with --job, or --limit": "请用 --job 指定一个，或用 --limit",
    "a job without a name": "没有名称的作业",
    "Slurm job {number}": "Slurm 作业 {number}",
    "{name} is of user {user}, whose processes this login cannot see": (
        "{name} 属于用户 {user}，此登录用户看不到其进程"
    ),
    "log in as that user, or as root, or set become: sudo": "请以该用户或 root 登录，或设置 become: sudo",
    "the job {name} is not here, but others are: {others}": "作业 {name} 不在这里，但有其他作业：{others}",
    "a job that waits for {via} is not here, but others are: {others}": (
        "这里没有等待 {via} 的作业，但有其他作业：{others}"
    ),
    "{what} is not here, but others are: {others}": "{what} 不在这里，但有其他作业：{others}",
    "check --job and --via": "请检查 --job 和 --via",
    "process {pid} is the monitor of a job that was killed: it reads that job's configuration, and this "
    "job's ranks would take it": (
        "进程 {pid} 是已被终止的作业的监视进程：它读取那个作业的配置，而本作业的卡会采用它"
    ),
    "end it (kill {pid}) and remove {path}; the running job can be captured after its next start only": (
        "请结束它（kill {pid}）并删除 {path}；正在运行的作业要在下次启动后才能采集"
    ),
    "jobs share one memory file ({name}), each would be captured too: {jobs}": (
        "多个作业共用一个内存文件（{name}），它们都会被采集：{jobs}"
    ),
    "jobs that start in the same hour on one host share it: give each its own container or /dev/shm": (
        "在同一主机上同一小时内启动的作业共用它：请为每个作业分配自己的容器或 /dev/shm"
    ),
    "ranks that share one memory file were started for different configurations: {paths}": (
        "共用一个内存文件的卡以不同的配置启动：{paths}"
    ),
    "these may be two jobs: nothing is sent to them": "可能是两个作业：不向它们发送任何内容",
    "its processes map a profiler's memory file, and neither PROF_CONFIG_PATH nor MSMONITOR_USE_DAEMON is "
    "set": ("其进程映射了 profiler 的内存文件，但 PROF_CONFIG_PATH 和 MSMONITOR_USE_DAEMON 都未设置"),
    "rank {rank} is there twice by one memory file: two jobs": "同一内存文件中卡 {rank} 出现两次：是两个作业",
    "give each job its own container or /dev/shm": "请为每个作业分配自己的容器或 /dev/shm",
    "{path} is older than every rank that maps it: it is a dead job's": (
        "{path} 比映射它的所有卡都旧：属于已结束的作业"
    ),
    "remove it before the job's next start; this job cannot be captured": (
        "请在作业下次启动前删除它；本作业无法采集"
    ),
    "{n} processes read configurations for these ranks, and one is needed": (
        "有 {n} 个进程为这些卡读取配置，而需要恰好一个"
    ),
    "the memory file {name} was removed while its job ran": "内存文件 {name} 在其作业运行时被删除",
    "the rank that starts it has ended or was killed: the job can be captured after its next start": (
        "启动它的卡已结束或被终止：作业要在下次启动后才能采集"
    ),
    "the hosts run different jobs: {jobs}": "各主机运行不同的作业：{jobs}",
    "the hosts run two jobs that call themselves the same: rank {rank} is on two hosts": (
        "各主机运行两个同名的作业：卡 {rank} 在两台主机上"
    ),
    "the hosts run two jobs that call themselves the same: {which}": "各主机运行两个同名的作业：{which}",
    "rank {rank} is on two hosts": "卡 {rank} 在两台主机上",
    "jobs of {sizes} ranks": "作业分别有 {sizes} 张卡",
    "ranks {ranks} of the job are on none of these hosts": "作业的卡 {ranks} 不在这些主机上",
    # Asking it.
    "{ranks} did not say to have taken it": "{ranks} 没有确认收到",
    "ranks {ranks}": "卡 {ranks}",
    "rank {rank} did not say its step within {n} s of being asked": (
        "卡 {rank} 在被询问后 {n} s 内没有给出其步"
    ),
    "does the job make steps? Is {path} written?": "作业是否在推进？{path} 是否有写入？",
    "does the job still make steps?": "作业是否仍在推进？",
    "does the job make steps? In MindSpore only dp.step() tells them": (
        "作业是否在推进？MindSpore 中只有 dp.step() 会报告步"
    ),
    "a capture began at step {step} instead": "采集在步 {step} 开始",
    "{path} asks for a capture at step {step}, which has not begun": "{path} 请求在步 {step} 采集，尚未开始",
    "{path} asks for steps {steps}": "{path} 请求步 {steps}",
    "wait for it; where it is left over in a file, write start_step 0 there and call this again": (
        "请等待其结束；如果只是文件中的遗留，请在其中写入 start_step 0 后再次调用"
    ),
    "{path}: there is none": "{path}：不存在",
    "the job makes it when it starts: was it removed, or has it not begun?": (
        "作业启动时会创建它：是否被删除，或作业尚未开始？"
    ),
    "rank 0 makes it when the job starts": "作业启动时由卡 0 创建",
    "{path} was changed by somebody else": "{path} 被他人修改",
    "the job was at step {step} when it was sent": "发送时作业已在步 {step}",
    "MindSpore's processes do not say where their file is": "MindSpore 的进程没有说明其文件的位置",
    "name its directory: --job /the/cfg_path": "请指定其目录：--job /the/cfg_path",
    "MindSpore tells no step": "MindSpore 不报告步",
    "API servers tell no step": "API 服务器不报告步",
    "name a log of the training that does: --step-log FILE --step-pattern REGEX": (
        "请指定会报告步的训练日志：--step-log FILE --step-pattern REGEX"
    ),
    "{path} told {n} steps in {m} s": "{path} 在 {m} s 内报告了 {n} 步",
    "is it this job's, and does --step-pattern find the number?": (
        "它是本作业的日志吗？--step-pattern 能找到数字吗？"
    ),
    "the server on port {port} answered {status}: {text}": "端口 {port} 的服务器回答 {status}：{text}",
    "the server on port {port} has no /start_profile: it was started without --profiler-config": (
        "端口 {port} 的服务器没有 /start_profile：启动时未加 --profiler-config"
    ),
    "the server does not say where it writes profiles": "服务器没有说明采集写到哪里",
    "start it with --profiler-config and an absolute torch_profiler_dir": (
        "请用 --profiler-config 和绝对路径的 torch_profiler_dir 启动它"
    ),
    # The daemon of msMonitor.
    "the daemon has a capture of steps {steps}, {state}": "守护进程有步 {steps} 的采集（{state}）",
    "npu-monitor runs, and the daemon refuses captures beside it": "npu-monitor 在运行，守护进程此时拒绝采集",
    "the daemon has heard of no job": "守护进程没有收到任何作业",
    "is its HOME that of the job? They meet at ~/dynolog.sock": (
        "其 HOME 与作业的是否相同？二者经 ~/dynolog.sock 通信"
    ),
    "its step did not change for {n} s": "其步在 {n} s 内没有变化",
    "the daemon says {status}: trace {trace}, monitor {monitor}; it knows none of the processes {pids}, or "
    "npu-monitor runs": "守护进程回答 {status}：trace {trace}，monitor {monitor}；"
    "它不认识进程 {pids}，或 npu-monitor 在运行",
    "an earlier text waits at the daemon, and ours was dropped": "守护进程有更早的请求，我们的被丢弃",
    "the daemon gave the text to {n} processes: {pids}": "守护进程把请求交给了 {n} 个进程：{pids}",
    "the job waits for step {step}, which somebody else has asked for": "作业在等待他人请求的步 {step}",
    "the job was at step {step} before it was ready for {start}": (
        "作业在为步 {start} 准备好之前已到步 {step}"
    ),
    "the job is at step {step}, and not ready for {start}": "作业在步 {step}，尚未为步 {start} 准备好",
    "a request is longer than msMonitor takes": "请求长度超过 msMonitor 的上限",
    "port {port} is a dynolog that knows nothing of Ascend": "端口 {port} 上的 dynolog 不支持 Ascend",
    "start the dynolog of msMonitor there": "请在那里启动 msMonitor 的 dynolog",
    "{path}: the certificates cannot be used: {why}": "{path}：证书无法使用：{why}",
    "it needs ca.crt, client.crt and client.key": "需要 ca.crt、client.crt 和 client.key",
    "port {port} does not answer as msMonitor does": "端口 {port} 的回答不像 msMonitor",
    "does it want TLS (--msmonitor-certs), or is another program there?": (
        "它是否要求 TLS（--msmonitor-certs），或者那里是其他程序？"
    ),
    "port {port} and our certificates do not agree: {why}": "端口 {port} 与我们的证书不一致：{why}",
    "look at --msmonitor-certs; the daemon checks ours, and we check its": (
        "请检查 --msmonitor-certs；守护进程检查我们的证书，我们检查它的"
    ),
    # The program on the host.
    "the host answers without end": "主机的回答没有结尾",
    "the host answers nonsense: {why}": "主机的回答无法理解：{why}",
    "the host told nonsense of its processes: {why}": "主机关于其进程的回答无法理解：{why}",
    "the host cannot run our program: {why}": "主机无法运行我们的程序：{why}",
    "it needs python3, 3.7 or newer": "需要 python3，3.7 或更新",
    "the connection to the host is gone": "与主机的连接已断开",
    "the program on the host has ended": "主机上的程序已结束",
    "the program on the host has ended: {why}": "主机上的程序已结束：{why}",
    "call it again": "请再次调用",
    "wait for its end, or look who it is": "请等待其结束，或查看是谁",
    "no answer for {n} s": "{n} s 没有响应",
    "look whether the host hangs": "请查看主机是否挂起",
    "{path}: held by the capture {name}": "{path}：被采集 {name} 占用",
    "{path}: held by the capture of somebody": "{path}：被他人的采集占用",
    "{path}: this is no JSON": "{path}：不是 JSON",
    "{path}: this is no file": "{path}：不是文件",
    "{path}: its time is {n} s ahead of this host's clock: ranks that took it take nothing else until then": (
        "{path}：其时间比该主机时钟快 {n} s：采用了它的卡在那之前不会接受其他内容"
    ),
    "{path}: its file system does not take the time that it is given": "{path}：其文件系统不保存所设置的时间",
    # The same steps, the same iterations.
    "it was seen at one step only": "只看到它处于一步",
    "no host has told its step": "没有主机报告其步",
    "its step is {n} ahead of the others' at the same moment: the same number is another iteration there": (
        "其步在同一时刻比其他主机超前 {n}：相同的编号在那里是另一次迭代"
    ),
    "its step is {n} behind the others' at the same moment: the same number is another iteration there": (
        "其步在同一时刻比其他主机落后 {n}：相同的编号在那里是另一次迭代"
    ),
    "was it restarted? It needs dynamic_profile.set_state to count as the others do": (
        "它是否重启过？需要 dynamic_profile.set_state 才能与其他主机一致地计数"
    ),
    "its capture began {n} s {side} the others'": "其采集比其他主机{side} {n} s 开始",
    "its capture began {n} s {side} the others': the same number was another iteration there": (
        "其采集与其他主机相差 {n} s（{side}）开始：相同的编号在那里是另一次迭代"
    ),
    "its collectives ended {n} s {side} those of the others of the same numbers, which is {steps} steps: "
    "these are other iterations": (
        "其集合通信与其他主机相同编号的结束时间相差 {n} s（{side}），即 {steps} 步：是另外的迭代"
    ),
    "was it restarted, or did it begin late?": "它是否重启过，或开始得晚？",
    "the files hold no collectives to tell by whether the same steps are the same iterations": (
        "文件中没有集合通信，无法判断相同的步是否为相同的迭代"
    ),
    "{n} hosts share no collectives with the others: their steps are as they say": (
        "{n} 台主机与其他主机没有共同的集合通信：其步以自报为准"
    ),
    "the capture has begun and did not end in time": "采集已开始，但未按时结束",
    "the capture did not begin in time": "采集未按时开始",
    "{n} of {m} captures are there, {hosts} of them not parsed": (
        "{m} 个采集中有 {n} 个，其中 {hosts} 个未解析"
    ),
    "they are kept in {path}": "它们保存在 {path}",
    "its files hold steps {steps}, those of most hosts {common}": "其文件包含步 {steps}，多数主机为 {common}",
    "the files do not say which steps they hold": "文件没有说明包含哪些步",
    "the files hold steps {steps}; asked for were {asked}": "文件包含步 {steps}；请求的是 {asked}",
    "parsing took longer than {n} s": "解析超过 {n} s",
    "parsing failed: {why}": "解析失败：{why}",
    # How it is called.
    "--live {n}: more than {m} steps fill the hosts' disks; take few, and again": (
        "--live {n}：超过 {m} 步会占满主机磁盘；请少采几步，多采几次"
    ),
    "--check looks at hosts, --live at jobs: --live N --dry-run sends nothing either": (
        "--check 查看主机，--live 查看作业：--live N --dry-run 同样不发送任何内容"
    ),
    "--require is 'all', or 'quorum N' with the number of hosts that are enough": (
        "--require 为 'all'，或 'quorum N'（足够的主机数）"
    ),
    "{option} {path}: an absolute path without = quotes or backslashes, or the job would lose it": (
        "{option} {path}：须为绝对路径，且不含 =、引号或反斜杠，否则作业会丢失它"
    ),
    "{text} is not a time; write it like 30m or 2h": "{text} 不是时间；请写成 30m 或 2h",
    "{option} goes with --live N": "{option} 需与 --live N 合用",
    "--step-pattern needs one group (…), which is the number": "--step-pattern 需要一个分组 (…)，即数字",
    "--webhook-format {name} is none of {names}": "--webhook-format {name} 不是 {names} 之一",
}
#: What the usage of a command is told with, by Python's parser of arguments.
USAGE: Mapping[str, str] = {
    "the following arguments are required: {names}": "缺少参数：{names}",
    "one of the arguments {names} is required": "需要下列参数之一：{names}",
    "unrecognized arguments: {names}": "无法识别的参数：{names}",
    "argument {name}: {why}": "参数 {name}：{why}",
    "expected one argument": "需要一个值",
    "expected at least one argument": "至少需要一个值",
    "not allowed with argument {name}": "不能与参数 {name} 合用",
    "ignored explicit argument {value}": "不接受值 {value}",
    "ambiguous option: {option} could match {names}": "选项 {option} 有歧义，可能是 {names}",
    "invalid choice: {value} (choose from {names})": "无效的取值 {value}（可选 {names}）",
    "invalid {type} value: {value}": "{value} 不是有效的取值",
    "{value} is not a whole number from 1": "{value} 不是从 1 起的整数",
    "{value} is not a number above 0": "{value} 不是大于 0 的数",
    "{value} is not KEY=VALUE": "{value} 不是 KEY=VALUE 的形式",
    "{value} is not a time; write it like 2025-01-31T12:00, 12h or @1735689600": (
        "{value} 不是时间；请写成 2025-01-31T12:00、12h 或 @1735689600"
    ),
    "{value} is not a date like 2026-05-31": "{value} 不是 2026-05-31 形式的日期",
    "{value} lets nothing through": "{value} 什么也不让通过",
    "{value}: one of {names}": "{value}：应为 {names} 之一",
    "an empty path: is a variable not set?": "路径为空：是否有变量未设置？",
    "did you mean: {command}": "是否要执行：{command}",
    "{option}: did you mean {meant}? Files of that name are taken by {glob}": (
        "{option}：是否指 {meant}？该名称的文件用 {glob} 选取"
    ),
    "no hosts: give {names} or --like RUN": "没有主机：请给出 {names} 或 --like RUN",
    "--what takes 'analysis', 'columns' or 'full', globs, or one of them and globs that narrow it": (
        "--what 的取值为 'analysis'、'columns' 或 'full'，或通配符，或其中之一加上缩小范围的通配符"
    ),
    "--ranks suspects needs findings: --like RUN names the run directory that has them, or --findings FILE": (
        "--ranks suspects 需要发现项：用 --like RUN 指明有发现项的运行目录，或用 --findings FILE"
    ),
    "--findings goes with --ranks suspects": "--findings 须与 --ranks suspects 合用",
    "--keep-raw suspects: nobody knows them yet; cluster-analyse RUN, and then {command}": (
        "--keep-raw suspects：尚不知道可疑卡；请先运行 cluster-analyse RUN，再运行 {command}"
    ),
    "--keep-raw goes with --what columns or analysis: anything else is whole already": (
        "--keep-raw 须与 --what columns 或 analysis 合用：其他内容本就完整"
    ),
    "whose job? --slurm-job ID is the number that sbatch printed": (
        "哪个作业？--slurm-job ID 是 sbatch 打印的编号"
    ),
}
