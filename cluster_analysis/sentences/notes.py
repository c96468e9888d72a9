"""Notes on what could not be judged, and why, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_run.facts import Fact
from cluster_run.kinds import NoteFact

SENTENCES: Mapping[NoteFact, Template] = {
    "no_step_times": (
        "no step times could be read: nothing can be said about this job",
        "没有可读的步耗时：无法对该作业下结论",
    ),
    "steps_as_a_whole": (
        "steps are known as a whole only: no file says which part of them was computing",
        "只知道整步时间：没有文件说明其中哪些是计算",
    ),
    "no_common_step": (
        "no step was recorded by all ranks: they are not compared",
        "没有所有卡都记录的步：无法比较",
    ),
    "no_operators": (
        "no communication operators: costs are bounds from step totals, links are not judged, and steps seem "
        "longer than they are where hosts run ahead of their devices",
        "没有通信算子：损失只是由步总时间得出的上限，链路未判断；主机超前于设备时，步时间显得比实际长",
    ),
    "no_communication_matrix": (
        "no link with two known ends: links are judged by groups, and by what each of their members sent",
        "没有两端均已知的链路：只能按通信域及其成员各自发送的数据判断链路",
    ),
    "ranks_missing": (
        "{n_read} of {n_ranks} ranks can be compared: whom {n_read:it|they} waited for may be "
        "{n_missing:the other one|among the other #}",
        "{n_ranks} 张卡中可比较的有 {n_read} 张：其等待的可能是{n_missing:另外那张卡|另外 # 张卡之一}",
    ),
    "few_steps": (
        "{n_steps} {n_steps:step|steps} only: a pause cannot be told from a fault; profile 5 steps or more",
        "只有 {n_steps} 步：无法区分停顿与故障；请采集 5 步以上",
    ),
    "few_peers": (
        "{n_ranks} {n_ranks:rank has|ranks have} fewer than {min_peers} peers of {n_ranks:its|their} own "
        "stage: {n_ranks:it is|they are} held against all ranks of the job, by idle time (three times as "
        "long or more) and by what all types of kernels have in common; smaller differences cannot be told "
        "without more replicas, or a good run as --baseline",
        "{n_ranks} 张卡在同一流水线阶段的同类卡少于 {min_peers} 张：与作业的所有卡对比空闲时间（达三倍才算）"
        "和各类算子共有的变慢；更小的差异需要更多数据并行副本，或用 --baseline 给出正常运行，才能分辨",
    ),
    "costly_unexplained": (
        "{findings:names} may cost {step_share:percent} of the step and cannot be told from chance, or from "
        "the work itself: this job is not called healthy; profile {n_steps} steps or more",
        "{findings:names} 可能占每步的 {step_share:percent}，无法与偶然或工作负载本身区分：不能判定为健康；"
        "请采集 {n_steps} 步以上",
    ),
    "waits_for_absent": (
        "{step_share:percent} of the mean step went into waiting for ranks without files, or for the "
        "network: {wait_us:ms} in step {step} for {ranks:rank|ranks} {ranks:listed}; collect them too",
        "平均每步有 {step_share:percent} 用于等待没有文件的卡或网络：第 {step} 步中等待卡 {ranks:listed} 达 "
        "{wait_us:ms}；请一并采集",
    ),
    "waited_for_others": (
        "{step_share:percent} of the mean step may be waiting for ranks that are not here: {findings:listed} "
        "blames nobody, and this job is not called healthy; collect the other ranks too",
        "平均每步的 {step_share:percent} 可能用于等待没有文件的卡：{findings:listed} 不归咎于任何卡，"
        "本作业不判为正常；请一并采集其他卡",
    ),
    "host_may_cost": (
        "{ranks:rank|ranks} {ranks:ranges} may cost {step_share:percent} of the step: it would be so much "
        "shorter if they idled as others do, but no pattern names them, and this job is not "
        "called healthy; capture more steps",
        "卡 {ranks:ranges} 可能占每步的 {step_share:percent}：若其空闲时间同其他卡一样，每步可缩短这么多，"
        "但没有规律足以指认，不能判定为健康；请采集更多步",
    ),
    "unread_communication": (
        "the communication of {n_ranks} {n_ranks:rank|ranks} could not be read, and takes "
        "{step_share:percent} of the step where all are counted: the network there is not judged, and "
        "this job is not called healthy",
        "{n_ranks} 张卡的通信数据无法读取，按所有卡平均占每步的 {step_share:percent}：这部分网络未判断，"
        "不能判定为健康",
    ),
    "uncompared_network": (
        "collectives of {n_groups} {n_groups:group|groups} take up to {step_share:percent} of the step, and "
        "nothing is there to compare them with (two hosts alone, or no communication_matrix.json): slow "
        "network or work, this job is not called healthy; compare with a good run: --baseline",
        "{n_groups} 个通信域的集合通信最多占每步的 {step_share:percent}，没有可比对象"
        "（只有两台主机，或没有 communication_matrix.json）：可能是网络慢，"
        "也可能是工作负载本身所需，不能判定为健康；请与正常运行对比：--baseline",
    ),
    "long_step": (
        "all ranks communicate for {longer_us:ms} longer in step {step} than usual, and no finding says "
        "why: look at the network at that time",
        "所有卡在第 {step} 步的通信比平常长 {longer_us:ms}，没有发现项能解释：请检查该时段的网络",
    ),
    "ranks_without_step_times": (
        "{n_silent} of {n_ranks} ranks {n_silent:has|have} no step that tells computing from idling",
        "{n_ranks} 张卡中有 {n_silent} 张没有能区分计算与空闲的步",
    ),
    "steps_of_some_ranks": (
        "{steps:step|steps} {steps:ranges}: not of all ranks; their other steps are compared",
        "第 {steps:ranges} 步：并非所有卡都有；比较其余的步",
    ),
    "no_start_times": (
        "operators have no start times: local gaps and replay are not known",
        "算子没有开始时间：无法得知算子间隔，也无法重放",
    ),
    "replay_off": (
        "the mean step of the replay differs from the measured one by {error_share:percent}: "
        "costs are less sure",
        "重放的平均步耗时与实测相差 {error_share:percent}：损失的可信度较低",
    ),
    "replay_far_off": (
        "the replay misses the measured steps by more than 5 %: what it cannot repeat may hide what was lost",
        "重放与实测的步耗时相差超过 5 %：无法重现的部分可能掩盖损失",
    ),
    "waiting_copied": (
        "{share:percent} of all waiting, {step_share:percent} of the step, does not follow from who came "
        "late: nobody can tell what was lost there",
        "全部等待时间的 {share:percent}（占每步 {step_share:percent}）无法由谁迟到来解释："
        "其中损失多少无法得知",
    ),
    "waited_inside": (
        "kernels that communicate inside waited for {step_share:percent} of the step, and no file tells for "
        "whom: nobody can tell what was lost there",
        "内部通信的算子等待占每步 {step_share:percent}，没有文件说明在等待谁：其中损失多少无法得知",
    ),
    "unpaired_messages": (
        "some sends and receives could not be paired: their waits are taken as they were",
        "部分 send 与 receive 无法配对：其等待时间按原值计",
    ),
    "several_runs": (
        "{runs:n} runs found: {runs:some}; only {chosen} is analysed (--part NAME takes another, or give its "
        "directory; --all-parts analyses all)",
        "发现 {runs:n} 次运行：{runs:some}；只分析 {chosen}"
        "（用 --part NAME 选择其他，或直接给出目录；--all-parts 分析全部）",
    ),
    "several_captures": (
        "{captures:n} jobs, or windows of one, found; only {chosen} is analysed (the newest with most ranks, "
        "unless --part names one). The others: {others:part_options}; all: --all-parts",
        "发现 {captures:n} 个作业（或同一作业的窗口）；只分析 {chosen}"
        "（未用 --part 指定时取卡数最多且最新的）。其余用 {others:part_options}，全部用 --all-parts",
    ),
    "unlike_versions": (
        "ranks were recorded by versions {versions:and} of CANN, in which the start of an operator may mean "
        "something else: starts are compared inside one rank only, between ranks ends are",
        "各卡由不同版本的 CANN（{versions:and}）采集，算子开始时间的含义可能不同：开始时间只在同一卡内比较，"
        "卡间比较结束时间",
    ),
    "windows_together": (
        "{windows:n} windows of the same processes are judged together, as steps of one job: {windows:some}; "
        "--part NAME takes one alone",
        "{windows:n} 个采集窗口来自相同进程，合并为同一作业的多个 step 判断：{windows:some}；"
        "用 --part NAME 单独分析其中之一",
    ),
    "capture_lacks_ranks": (
        "capture {capture} lacks {ranks:rank|ranks} {ranks:ranges}",
        "采集 {capture} 缺少卡 {ranks:ranges}",
    ),
    "family_left_out": (
        "{n_captures} {family} {n_captures:capture|captures} beside richer ones {n_captures:is|are} not read",
        "{n_captures} 个 {family} 采集未读取：同一次运行中有更完整的采集",
    ),
    "only_capture_is_rank_0": (
        "no file says which rank it is: the only capture is taken as rank 0 of 1",
        "没有文件注明是哪张卡：唯一的采集视为单卡作业的卡 0",
    ),
    "one_rank_of_several": (
        "of a job with more ranks only rank {rank} was read: whom it waited for is not here, and nobody is "
        "blamed",
        "作业有多张卡，只读取了卡 {rank}：它等待的对象不在其中，不归咎于任何一方",
    ),
    "other_times": (
        "{ranks:rank|ranks} {ranks:ranges} {ranks:was|were} in steps of the same numbers at other times than "
        "other ranks of {ranks:its|their} host: of another run, or with steps that are numbered otherwise; "
        "who waited for whom is not known",
        "卡 {ranks:ranges} 与同主机其他卡的同号步不在同一时间：来自另一次运行，或步号编排不同；"
        "无法得知谁在等待谁",
    ),
    "windows_unlike": (
        "windows are of unlike length: {ranks:rank|ranks} {ranks:ranges} recorded {times:times} times as "
        "many iterations (counted by operators that repeat); computing is compared by iteration, and "
        "communication is not compared",
        "采集窗口长度不同：卡 {ranks:ranges} 记录的迭代数为其他卡的 {times:times} 倍（按重复的算子计数）；"
        "计算按迭代比较，通信不比较",
    ),
    "windows_not_compared": (
        "windows are of unlike length: those of {ranks:rank|ranks} {ranks:ranges} cannot be counted in "
        "iterations, and are not compared",
        "采集窗口长度不同：卡 {ranks:ranges} 的窗口无法按迭代计数，不作比较",
    ),
    "steps_in_one_window": (
        "operators are in no step (MindSpore's jit_level O2): steps {steps:ranges} are compared as one",
        "通信算子不属于任何步（MindSpore 的 jit_level O2）：第 {steps:ranges} 步合并为一个窗口比较",
    ),
    "last_step_cut": (
        "step {step} is left out: the end of the recording cut it, it has fewer operators than all before it",
        "未计入第 {step} 步：采集结束时被截断，其算子少于之前各步",
    ),
    "hosts_by_devices": (
        "the names of captures do not tell hosts; device numbers that start again make {n_hosts} hosts, "
        "counted by rank: put the job's rank table (hccl.json) beside the captures to be sure",
        "采集名称无法区分主机；按重新开始的设备号，依卡号计为 {n_hosts} 台主机："
        "把作业的 rank table（hccl.json）放在采集旁可以确认",
    ),
    "hosts_unknown": (
        "hosts are unknown ({why:term}): ranks are judged, and nothing is said of hosts; put the job's rank "
        "table (hccl.json) beside the captures, or collect them with cluster-collect",
        "主机未知（{why:term}）：只判断各卡，不对主机下结论；请把作业的 rank table（hccl.json）放在采集旁，"
        "或用 cluster-collect 收集",
    ),
    "hosts_are_one": (
        "hosts {host} and {other} are one machine by their databases (HOST_INFO): both are host {host}",
        "根据数据库（HOST_INFO），主机 {host} 与 {other} 是同一台机器：都记为主机 {host}",
    ),
    "no_groups": (
        "r1.x files name no communication groups: operators of one name are matched over the ranks that "
        "have it, point-to-point operators not at all",
        "r1.x 文件不含通信域：同名算子在拥有它的卡之间匹配，点对点算子不匹配",
    ),
    "no_groups_of_iterations": (
        "timelines by iteration (device_*/timeline, CANN of 2023) name no communication groups: operators of "
        "one name are matched over the ranks that have it",
        "按迭代导出的 timeline（device_*/timeline，2023 年的 CANN）不含通信域：同名算子在拥有它的卡之间匹配",
    ),
    "other_models": (
        "rank {rank}: the iterations of model {model} are read, those of {others:model|models} "
        "{others:ranges} are not: there are fewer",
        "卡 {rank}：读取模型 {model} 的迭代；模型 {others:ranges} 的迭代较少，未读取",
    ),
    "no_communication_recorded": (
        "{ranks:rank|ranks} {ranks:ranges} {ranks:was|were} profiled at Level0: without communication, "
        "waiting and links cannot be judged; profile at Level1",
        "卡 {ranks:ranges} 以 Level0 采集：没有通信数据，无法判断等待与链路；请以 Level1 采集",
    ),
    "level0_operators": (
        "{ranks:rank|ranks} {ranks:ranges} {ranks:was|were} profiled at Level0: operators are known by their "
        "start and length, no links; profile at Level1",
        "卡 {ranks:ranges} 以 Level0 采集：只知道通信算子的开始时间和时长，不知道链路；请以 Level1 采集",
    ),
    "mean_step_only": (
        "rank {rank}, {file}: it holds no step but their mean, which is shown as step 0",
        "卡 {rank}，{file}：其中没有各步，只有平均值，显示为步 0",
    ),
    "timeline_too_large": (
        "rank {rank}, {file}: {n_bytes:mb}, and at most {most_bytes:mb} are read: what the host did while "
        "its device idled is not known; a shorter profile would tell, or collecting with --what columns",
        "卡 {rank}，{file}：{n_bytes:mb}，最多读取 {most_bytes:mb}："
        "设备空闲时主机在做什么未知；缩短采集，或用 --what columns 收集，可以得知",
    ),
    "average_row_differs": (
        "rank {rank}, {file}: its average row says {said_ms:parts} ms for interval / forward-backward / "
        "tail, but its {n_steps} steps average {seen_ms:parts} ms without the first; they are used",
        "卡 {rank}，{file}：平均行的 interval / forward-backward / tail 为 {said_ms:parts} ms，而文件中 "
        "{n_steps} 步（不含第一步）的平均为 {seen_ms:parts} ms；以各步为准",
    ),
    "fleet_not_asked": (
        "the fleet was not asked: {why}: nothing is known of these devices from other runs",
        "未查询机群记录：{why}；其他运行对这些设备的记录未知",
    ),
    "fleet_knows_none": ("the fleet has no other run of these devices", "机群中没有这些设备的其他运行"),
    "fleet_names_others": (
        "by the fleet {units:some} {units:is|are} slow over many jobs, which no finding of this run names",
        "据机群记录，{units:some} 在多个作业中变慢，但本次运行的发现未点名",
    ),
}


#: Why a job is not called healthy, shorter than its note says it: for each note of `OPEN_NOTES`.
WHY_OPEN: Mapping[NoteFact, Template] = {
    "costly_unexplained": (
        "what may cost {step_share:percent} of the step cannot be told from chance or from the work itself",
        "可能占每步 {step_share:percent} 的损失，无法与偶然或工作负载本身区分",
    ),
    "one_rank_of_several": ("whom rank {rank} waited for is not here", "卡 {rank} 等待的对象不在其中"),
    "no_common_step": ("no step was recorded by all ranks", "没有所有卡都记录的步"),
    "other_times": (
        "{ranks:rank|ranks} {ranks:ranges} {ranks:was|were} in these steps at other times than other ranks "
        "of {ranks:its|their} host",
        "卡 {ranks:ranges} 与同主机其他卡的同号步不在同一时间",
    ),
    "windows_unlike": (
        "windows of ranks hold unlike numbers of iterations, so that their communication cannot be compared",
        "各卡窗口的迭代数不同，无法比较通信",
    ),
    "windows_not_compared": (
        "windows of ranks are of unlike length, and nothing counts their iterations",
        "各卡窗口长度不同，且无法计数迭代",
    ),
    "waits_for_absent": (
        "{step_share:percent} of the step went into waiting for ranks without files, or for the network",
        "每步有 {step_share:percent} 用于等待没有文件的卡或网络",
    ),
    "waited_for_others": (
        "{step_share:percent} of the step may be waiting for ranks that are not here",
        "每步有 {step_share:percent} 可能用于等待没有文件的卡",
    ),
    "host_may_cost": (
        "{ranks:rank|ranks} {ranks:ranges} may cost {step_share:percent} of the step, in no pattern",
        "卡 {ranks:ranges} 可能占每步的 {step_share:percent}，但没有规律足以指认",
    ),
    "ranks_without_step_times": (
        "{n_silent} of {n_ranks} ranks {n_silent:has|have} no step that tells computing from idling",
        "{n_ranks} 张卡中有 {n_silent} 张没有能区分计算与空闲的步",
    ),
    "unread_communication": (
        "the communication of {n_ranks} {n_ranks:rank|ranks} could not be read",
        "{n_ranks} 张卡的通信数据无法读取",
    ),
    "uncompared_network": (
        "communication takes {step_share:percent} of the step, and nothing is there to compare it with",
        "占每步 {step_share:percent} 的通信没有可比对象",
    ),
    "long_step": (
        "all ranks communicate for {longer_us:ms} longer in step {step}, and nothing says why",
        "所有卡在第 {step} 步的通信长了 {longer_us:ms}，原因不明",
    ),
    "replay_far_off": (
        "the replay misses the measured steps by more than 5 %, which may hide what was lost",
        "重放与实测的步耗时相差超过 5 %，可能掩盖损失",
    ),
    "waiting_copied": (
        "it is not known for whom {share:percent} of all waiting was, {step_share:percent} of the step",
        "全部等待时间的 {share:percent}（占每步 {step_share:percent}）不知在等待谁",
    ),
    "waited_inside": (
        "kernels that communicate inside waited for {step_share:percent} of the step, nobody knows for whom",
        "内部通信的算子等待占每步 {step_share:percent}，不知在等待谁",
    ),
}


def why_open(notes: Sequence[Fact]) -> Phrase | None:
    """Return, shorter than its note, the first question that notes leave open; None where none does."""
    return next((fill(WHY_OPEN[one.kind], dict(one.values)) for one in notes if one.kind in WHY_OPEN), None)  # type: ignore[index]


def note(fact: Fact) -> Phrase:
    """Return the sentence of a note."""
    return fill(SENTENCES[fact.kind], dict(fact.values))  # type: ignore[index]
