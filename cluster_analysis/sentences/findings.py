"""Sentences of findings: one for each fact, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.network import NETWORK
from cluster_analysis.sentences.phrase import Phrase, Template, fill, joined
from cluster_analysis.sentences.whole_job import WHOLE_JOB
from cluster_run.facts import Fact, FindingFact, FleetFact
from cluster_run.findings import Finding

#: A saving below this gets no sentence.
_NOTHING_US = 5.0
_PEERS = ("its {n_peers} {n_peers:peer|peers} of {role:role}", "{role:role}的 {n_peers} 张同类卡")
_HOST = (
    "{ranks:n} {ranks:rank|ranks} of host {host} ({ranks:ranges})",
    "主机 {host} 的 {ranks:n} 张卡（{ranks:ranges}）",
)
_HOSTS = (
    "ranks of the same stage on {n_hosts} other {n_hosts:host|hosts}",
    "另外 {n_hosts} 台主机上同阶段的卡",
)
_EXPOSED = (
    "Communication that computing does not cover takes {exposed_us:ms} a step, {step_share:percent} of "
    "it: of the operators' time",
    "每步有 {exposed_us:ms}（{step_share:percent}）的通信未被计算掩盖：算子时间中",
)

_HOW_MUCH: Template = (
    "{level:change} ({low:change} to {high:change}) {metric:metric} over {n_runs} {n_runs:job|jobs}",
    "{metric:metric} {level:change}（{low:change} 至 {high:change}），共 {n_runs} 个作业",
)
_AND_MORE: Template = (
    "{n_episodes:|; slow # times so far}{by_clock:; its clock is lower as well|}{counters:counted}"
    "{n_named:|; # job of the 30 days up to the newest run names it"
    "|; # jobs of the 30 days up to the newest run name it}",
    "{n_episodes:|；迄今变慢 # 次}{by_clock:；其频率也较低|}{counters:counted}"
    "{n_named:|；截至最新一次运行的 30 天内有 # 个作业点名|；截至最新一次运行的 30 天内有 # 个作业点名}",
)
_PROBED: Template = (
    "{is_confirmed:; a probe within the last week found it slow|}"
    "{is_cleared:; a probe within the last week found it as fast as its control|}",
    "{is_confirmed:；最近一周的探测确认其较慢|}{is_cleared:；最近一周的探测表明其与对照设备一样快|}",
)
_STORIES: Mapping[FleetFact, Template] = {
    "fleet_slow": (
        f"{{unit}}: slow since {{is_born:its first job, |}}{{since}}, {_HOW_MUCH[0]}{_AND_MORE[0]}",
        f"{{unit}}：自 {{since}}{{is_born:（首个作业）|}}起变慢，{_HOW_MUCH[1]}{_AND_MORE[1]}",
    ),
    "fleet_intermittent": (
        f"{{unit}}: slow in some jobs, {_HOW_MUCH[0]} in the mean",
        f"{{unit}}：在部分作业中变慢，平均 {_HOW_MUCH[1]}",
    ),
    "fleet_repaired": (
        f"{{unit}}: as others again since {{since}}, {_HOW_MUCH[0]}",
        f"{{unit}}：自 {{since}} 起恢复正常，{_HOW_MUCH[1]}",
    ),
    "fleet_healthy": (f"{{unit}}: healthy, {_HOW_MUCH[0]}", f"{{unit}}：正常，{_HOW_MUCH[1]}"),
    "fleet_unknown": (
        f"{{unit}}: not clear yet, {_HOW_MUCH[0]}",
        f"{{unit}}：尚不明确，{_HOW_MUCH[1]}",
    ),
}
#: Sentences of the fleet's memory on a device or host, one a state.
STORIES: Mapping[FleetFact, Template] = {
    kind: (english + _PROBED[0], chinese + _PROBED[1]) for kind, (english, chinese) in _STORIES.items()
}
#: The same as sentences of a finding.
QUOTES: Mapping[FindingFact, Template] = {
    kind: (f"By the fleet, {english}.", f"据机群记录，{chinese}。")
    for kind, (english, chinese) in STORIES.items()
}

#: The sentence of each fact. Besides the fact's values it may speak of the finding's: `who` (the rank and its
#: host), `rank`, `host`, `hosts`, `src`, `dst`, `ends`, and `when` (in which steps).
SENTENCES: Mapping[FindingFact, Template] = {
    "rank_computing": (
        f"{{who:capital}} computes {{slower_share:percent}} slower than {_PEERS[0]} {{when}}.",
        f"{{who}}计算比{_PEERS[1]}慢 {{slower_share:percent}}（{{when}}）。",
    ),
    "rank_free": (
        f"{{who:capital}} leaves its device idle {{more_us:ms}} longer than {_PEERS[0]} {{when}}.",
        f"{{who}}的设备空闲时间比{_PEERS[1]}长 {{more_us:ms}}（{{when}}）。",
    ),
    "rank_preparing": (
        f"{{who:capital}} leaves its device idle {{more_us:ms}} longer than {_PEERS[0]} {{when}}, mostly "
        "before the first operator.",
        f"{{who}}的设备空闲时间比{_PEERS[1]}长 {{more_us:ms}}（{{when}}），多在首个算子之前。",
    ),
    "host_computing": (
        f"All {_HOST[0]} compute {{slower_share:percent}} slower than {_HOSTS[0]}.",
        f"{_HOST[1]}计算都比{_HOSTS[1]}慢 {{slower_share:percent}}。",
    ),
    "host_free": (
        f"The {_HOST[0]} leave their devices idle {{more_us:ms}} longer a step than {_HOSTS[0]}.",
        f"{_HOST[1]}的设备每步空闲时间比{_HOSTS[1]}长 {{more_us:ms}}。",
    ),
    "host_preparing": (
        f"The {_HOST[0]} leave their devices idle {{more_us:ms}} longer a step than {_HOSTS[0]}, mostly "
        "before the first operator.",
        f"{_HOST[1]}的设备每步空闲时间比{_HOSTS[1]}长 {{more_us:ms}}，多在首个算子之前。",
    ),
    "computing_or_idle": (
        "Idle time counts as computing in these files: it may be either.",
        "这些文件把空闲时间计入计算，无法区分二者。",
    ),
    "all_kernels": (
        "All kinds of kernels are slower ({over}{kernels:shares}): clock or temperature.",
        "各类算子都变慢（{over}{kernels:shares}）：可能是频率或温度所致。",
    ),
    "matrix_kernels": (
        "Only its matrix kernels are slower ({over}{kernels:shares}): power limit?",
        "仅矩阵（Cube）算子变慢（{over}{kernels:shares}）：可能是功耗限制。",
    ),
    "vector_kernels": (
        "Only its vector kernels are slower ({over}{kernels:shares}): memory bandwidth?",
        "仅向量（Vector）算子变慢（{over}{kernels:shares}）：可能是内存带宽所致。",
    ),
    "some_kernels": (
        "Slower are {kernels:shares}; its other kernels are not.",
        "变慢的算子：{kernels:shares}；其余算子正常。",
    ),
    "clock_below_peers": (
        "Its AI cores ran at {own_mhz:.0f} MHz, {lower_share:percent} below those of its peers "
        "({peers_mhz:.0f} MHz): the low clock makes it slow.",
        "其 AI Core 频率为 {own_mhz:.0f} MHz，比同类（{peers_mhz:.0f} MHz）低 {lower_share:percent}："
        "频率低导致计算变慢。",
    ),
    "moment_or_fault": (
        "With {n_steps} {n_steps:step|steps} a moment cannot be told from a fault.",
        "只有 {n_steps} 步，无法区分偶发与故障。",
    ),
    **NETWORK,
    "rank_pauses": (
        "{who:capital} pauses for {length_us:ms} {when}; its peers do not.",
        "{who}停顿 {length_us:ms}（{when}）；同类没有停顿。",
    ),
    "rank_pauses_regularly": (
        "{who:capital} pauses for {length_us:ms} every {every_n_steps} steps; its peers do not.",
        "{who}每 {every_n_steps} 步停顿 {length_us:ms}；同类没有停顿。",
    ),
    "ranks_pause_by_turns": (
        "{ranks:Rank|Ranks} {ranks:ranges} {ranks:pauses|pause} {n_pauses} {n_pauses:time|times} in "
        "{n_steps} steps, mostly for {length_us:ms}: each pause may be chance, what they cost is not.",
        "卡 {ranks:ranges} 在 {n_steps} 步中各自停顿，共 {n_pauses} 次，多为 {length_us:ms}："
        "单次可能是偶然，合计的损失不是。",
    ),
    "job_pauses_once": (
        "All ranks pause for {length_us:ms} {when}.",
        "所有卡停顿 {length_us:ms}（{when}）。",
    ),
    "job_pauses_regularly": (
        "All ranks pause for {length_us:ms} every {every_n_steps} steps.",
        "所有卡每 {every_n_steps} 步停顿 {length_us:ms}。",
    ),
    "stages_uneven": (
        "Stage {stage} computes {computing_us:ms} a step against {other_us:ms} in stage {other_stage}: "
        "the work is "
        "split unevenly, {above_mean_share:percent} above the mean of the {n_stages} stages.",
        "流水线阶段 {stage} 每步计算 {computing_us:ms}，阶段 {other_stage} 为 {other_us:ms}：切分不均衡，"
        "比 {n_stages} 个阶段的平均值高 {above_mean_share:percent}。",
    ),
    "replicas_uneven": (
        "The {n_replicas} data-parallel replicas differ by {spread_share:percent} in computing, another "
        "one each "
        "step: their samples differ in length.",
        "{n_replicas} 个数据并行副本的计算时间相差 {spread_share:percent}，且每步不同：样本长度不一。",
    ),
    "experts_uneven": (
        "Ranks that hold experts differ by {spread_share:percent} in computing in every step; "
        "{ranks:rank|ranks} {ranks:ranges} {ranks:computes|compute} {more_share:percent} longer than usual.",
        "各专家所在卡的计算时间每步都相差 {spread_share:percent}；卡 {ranks:ranges} 比通常长 "
        "{more_share:percent}。",
    ),
    **WHOLE_JOB,
    **QUOTES,
    "could_be_covered": (
        "Covered by computing, it would save {cost_us:ms} a step.",
        "若被计算掩盖，每步可节省 {cost_us:ms}。",
    ),
    "host_alone_late": (
        "Devices of host {host} idle {own_us:ms} a step, mostly before the first operator, all others "
        "{others_us:ms}. All ranks of its "
        "stage are on it: it may be the host's input, or what this stage prepares.",
        "主机 {host} 的设备每步空闲 {own_us:ms}，多在首个算子之前，其他主机为 {others_us:ms}。"
        "该 stage 的所有卡都在这台主机上：可能是该主机的输入慢，也可能是该 stage 自身的准备工作。",
    ),
    "host_alone_idle": (
        "Devices of host {host} idle {own_us:ms} a step, mostly between operators, all others "
        "{others_us:ms}. All ranks of its stage are on it: it may be the host, or how this "
        "stage's operators are dispatched.",
        "主机 {host} 的设备每步空闲 {own_us:ms}，多在算子之间，其他主机为 {others_us:ms}。"
        "该 stage 的所有卡都在这台主机上：可能是该主机慢，也可能是该 stage 的算子下发方式。",
    ),
    "host_alone_slow": (
        "Every type of kernel takes {slower_share:percent} longer or more on host {host} than elsewhere. "
        "All ranks of its stage are on it: it may be the host, or what this stage computes.",
        "主机 {host} 上每类 kernel 都比其他主机至少慢 {slower_share:percent}。该 stage 的所有卡都在"
        "这台主机上：可能是该主机慢，也可能是该 stage 的计算量大。",
    ),
    "exposed": (
        f"{_EXPOSED[0]} {{moving_share:percent}} moves data, {{waiting_share:percent}} waits for each other. "
        "Most data moves in each {role:term}.",
        f"{_EXPOSED[1]} {{moving_share:percent}} 用于传输，{{waiting_share:percent}} 用于相互等待。"
        "数据主要在{role:term}中传输。",
    ),
    "exposed_of_some_ranks": (
        f"{_EXPOSED[0]} at most {{moving_share:percent}} moves data, the rest waits for each other and for "
        "ranks without files. Most data moves in each {role:term}.",
        f"{_EXPOSED[1]}至多 {{moving_share:percent}} 用于传输，其余用于相互等待以及等待没有文件的卡。"
        "数据主要在{role:term}中传输。",
    ),
    "small_operators": (
        "{n_a_step} {op_type} operators of {size_bytes:mb} a step in each {role:term} take {time_us:ms}: "
        "latency, not bandwidth, is what they cost.",
        "每个{role:term}每步有 {n_a_step} 个 {size_bytes:mb} 的 {op_type}，共耗时 {time_us:ms}："
        "开销在时延而非带宽。",
    ),
    "cost_is_bound": (
        "The cost is an upper bound: there are no operators to replay.",
        "损失为上限：没有可重放的算子。",
    ),
    "cost_not_replayable": (
        "Its steps cannot be replayed well enough for an exact cost.",
        "这些步无法准确重放，因此不给出确切的损失。",
    ),
    "cost_not_explained": (
        "Its step lasted that much longer, which the replay does not explain: no cost is quoted.",
        "该步确实长了这么多，但重放无法解释，因此不给出损失。",
    ),
    "cost_at_least": (
        "It may cost more: a rank waits for what no file shows, whatever is repaired.",
        "实际损失可能更高：有卡一直在等待文件中没有记录的对象。",
    ),
    "late_even_so": (
        "The replay may miss who waits for it: it costs up to {cost_us:ms} a step, by which it is later than "
        "all ranks that nobody suspects.",
        "重放可能漏掉等待它的卡：它每步比所有未被怀疑的卡晚 {cost_us:ms}，损失至多如此。",
    ),
    "hidden": (
        "Hidden behind other findings: once they are fixed, it costs {cost_us:ms}.",
        "被其他发现项掩盖：修复它们之后，本项每步损失 {cost_us:ms}。",
    ),
}
_WHO: Template = ("rank {rank}", "卡 {rank}")
_WHO_AND_HOST: Template = ("rank {rank} (host {host})", "卡 {rank}（主机 {host}）")
_EVERY_STEP: Template = ("in every step", "每一步")
_ONLY_STEP: Template = ("in the only step", "仅有的一步")
_SOME_STEPS: Template = (
    "in {steps:step|steps} {steps:ranges} ({steps:n} of {n_steps})",
    "第 {steps:ranges} 步，{n_steps} 步中有 {steps:n} 步",
)
_ONE_STEP: Template = ("in {steps:step|steps} {steps:ranges}", "第 {steps:ranges} 步")
_OVER_ALL: Template = ("over all steps ", "按所有步计算，")
_GROWING: Template = ("with a gap that grows from step to step", "逐步加重")


def summary(finding: Finding) -> Phrase:
    """Return what a finding says, a sentence a fact."""
    common = {
        "who": who(finding),
        "rank": finding.ranks[0] if finding.ranks else None,
        "host": finding.hosts[0] if finding.hosts else "",
        "hosts": finding.hosts,
        "src": finding.links[0].src if finding.links else None,
        "dst": finding.links[0].dst if finding.links else None,
        "ends": _ends(finding),
        # Kernels are known for all steps together.
        "over": Phrase("", "") if finding.pattern == "persistent" else fill(_OVER_ALL, {}),
    }
    sentences = []
    for one in finding.facts:
        if one.kind == "could_be_covered" and _is_nothing(one["cost_us"]):
            continue
        values = {**common, **dict(one.values)}
        n_steps = values.get("n_steps")
        when = steps_of(finding, n_steps if isinstance(n_steps, int) else None)
        sentences.append(fill(SENTENCES[one.kind], {**values, "when": when}))  # type: ignore[index]
    return joined(sentences)


def who(finding: Finding) -> Phrase:
    """Return the first rank of a finding with its host: `rank 13 (host 2)`; empty without ranks."""
    if not finding.ranks:
        return Phrase("", "")
    values = {"rank": finding.ranks[0], "host": finding.hosts[0] if finding.hosts else ""}
    return fill(_WHO_AND_HOST if finding.hosts else _WHO, values)


def steps_of(finding: Finding, n_steps: int | None) -> Phrase:
    """Return in which steps a finding shows, of the `n_steps` of the job where they are known."""
    if finding.pattern == "trend":
        return fill(_GROWING, {})
    if n_steps == 1:
        return fill(_ONLY_STEP, {})
    if n_steps is not None and len(finding.steps) >= n_steps:
        return fill(_EVERY_STEP, {})
    values = {"steps": finding.steps, "n_steps": n_steps}
    return fill(_ONE_STEP if n_steps is None else _SOME_STEPS, values)


def _is_nothing(time_us: object) -> bool:
    """Whether a time would be written as nothing: that something saves as much is no news."""
    return isinstance(time_us, float | int) and time_us < _NOTHING_US


def _ends(finding: Finding) -> tuple[int, ...]:
    if not finding.links:
        return ()
    first = finding.links[0]
    return tuple(sorted((first.src, first.dst)))


def story(said: Fact) -> Phrase:
    """Return what is said of a unit."""
    return fill(STORIES[said.kind], dict(said.values))  # type: ignore[index]
