"""What findings say: a sentence of each fact, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Phrase, Template, fill, joined
from cluster_analysis.sentences.whole_job import WHOLE_JOB
from cluster_run.facts import FindingFact
from cluster_run.findings import Finding

_PEERS = ("its {n_peers} {n_peers:peer|peers} of {role:role}", "{role:role}的 {n_peers} 个同类")
_HOST = ("{ranks:n} ranks of host {host} ({ranks:ranges})", "主机 {host} 的 {ranks:n} 张卡（{ranks:ranges}）")
_HOSTS = (
    "ranks of the same stage on {n_hosts} other {n_hosts:host|hosts}",
    "其他 {n_hosts} 台主机上同阶段的卡",
)
_LINKS = (
    "takes {slower_share:percent} longer for the same bytes than {n_links} other {transport} links "
    "(seen {n_seen} times).",
    "传输相同数据的时间比其他 {n_links} 条 {transport} 链路长 {slower_share:percent}（观测 {n_seen} 次）。",
)
_OPERATORS = (
    "takes {slower_share:percent} longer for the same bytes than {n_others} like it elsewhere.",
    "传输相同数据的时间比其他 {n_others} 个同类长 {slower_share:percent}。",
)
_EXPOSED = (
    "Communication that computing does not cover takes {exposed_us:ms} a step, {step_share:percent} of "
    "it: of the "
    "operators' time {moving_share:percent} moves data, {waiting_share:percent}",
    "每步有 {exposed_us:ms}（{step_share:percent}）的通信未被计算掩盖：算子时间中 {moving_share:percent} "
    "用于传输，"
    "{waiting_share:percent} ",
)
_TOOK = ("took {took_us:ms} instead of {usual_us:ms}", "耗时 {took_us:ms}，通常为 {usual_us:ms}")

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
        f"{{who:capital}} starts its work {{more_us:ms}} later than {_PEERS[0]} {{when}}.",
        f"{{who}}比{_PEERS[1]}晚 {{more_us:ms}} 开始（{{when}}）。",
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
        f"The {_HOST[0]} start their steps {{more_us:ms}} later than {_HOSTS[0]}.",
        f"{_HOST[1]}每步比{_HOSTS[1]}晚 {{more_us:ms}} 开始。",
    ),
    "all_kernels": (
        "All kinds of kernels are slower ({kernels:shares}): clock or temperature.",
        "各类算子都变慢（{kernels:shares}）：可能是频率或温度所致。",
    ),
    "matrix_kernels": (
        "Only its matrix kernels are slower ({kernels:shares}): power limit?",
        "仅矩阵（Cube）算子变慢（{kernels:shares}）：可能是功耗限制。",
    ),
    "vector_kernels": (
        "Only its vector kernels are slower ({kernels:shares}): memory bandwidth?",
        "仅向量（Vector）算子变慢（{kernels:shares}）：可能是内存带宽所致。",
    ),
    "some_kernels": (
        "Slower are {kernels:shares}; its other kernels are not.",
        "变慢的算子：{kernels:shares}；其余算子正常。",
    ),
    "moment_or_fault": (
        "With {n_steps} {n_steps:step|steps} a moment cannot be told from a fault.",
        "只有 {n_steps} 步，无法区分偶发与故障。",
    ),
    "link_one_way": (
        f"The {{transport}} link from rank {{src}} to rank {{dst}} {_LINKS[0]}",
        f"卡 {{src}} 到卡 {{dst}} 的 {{transport}} 链路{_LINKS[1]}",
    ),
    "link_both_ways": (
        f"The {{transport}} link between ranks {{ends:and}} {_LINKS[0]}",
        f"卡 {{ends:and}} 之间的 {{transport}} 链路{_LINKS[1]}",
    ),
    "nic": (f"The NIC of {{who}} {_LINKS[0]}", f"{{who}}的网卡{_LINKS[1]}"),
    "nic_sending": (f"The NIC of {{who}}, sending, {_LINKS[0]}", f"{{who}}的网卡发送时，{_LINKS[1]}"),
    "nic_receiving": (f"The NIC of {{who}}, receiving, {_LINKS[0]}", f"{{who}}的网卡接收时，{_LINKS[1]}"),
    "port": (
        f"{{who:capital}} ({{transport}} links inside the host) {_LINKS[0]}",
        f"{{who}}（主机内 {{transport}} 链路）{_LINKS[1]}",
    ),
    "port_sending": (
        f"{{who:capital}} ({{transport}} links inside the host), sending, {_LINKS[0]}",
        f"{{who}}（主机内 {{transport}} 链路）发送时，{_LINKS[1]}",
    ),
    "port_receiving": (
        f"{{who:capital}} ({{transport}} links inside the host), receiving, {_LINKS[0]}",
        f"{{who}}（主机内 {{transport}} 链路）接收时，{_LINKS[1]}",
    ),
    "host_pair": (
        f"The network between hosts {{hosts:and}} {_LINKS[0]}",
        f"主机 {{hosts:and}} 之间的网络{_LINKS[1]}",
    ),
    "uplink": (f"The uplink of host {{host}} {_LINKS[0]}", f"主机 {{host}} 的上行链路{_LINKS[1]}"),
    "may_be_nic": (
        "It may as well be the NIC of rank {ranks:or}, or the network between the hosts: not separable "
        "with this "
        "traffic, which uses no other link there.",
        "也可能是卡 {ranks:or} 的网卡或主机之间的网络：作业在此处没有使用其他链路，无法区分。",
    ),
    "may_be_port": (
        "It may as well be the port of rank {ranks:or}: not separable with this traffic, which uses no other "
        "link there.",
        "也可能是卡 {ranks:or} 的端口：作业在此处没有使用其他链路，无法区分。",
    ),
    "only_two_links": (
        "Only two of its links carry traffic: one of them alone may be the reason.",
        "其中只有两条链路有流量：可能仅是其中一条的问题。",
    ),
    "operators_between_two": (
        f"Communication between ranks {{ends:and}} {_OPERATORS[0]}",
        f"卡 {{ends:and}} 之间的通信{_OPERATORS[1]}",
    ),
    "operators_of_rank": (
        f"Every operator that {{who}} shares with others over {{transport}} {_OPERATORS[0]}",
        f"{{who}}经 {{transport}} 与其他卡共同执行的每个通信算子，{_OPERATORS[1]}",
    ),
    "operators_across_host": (
        f"Every operator that crosses the border of host {{host}} {_OPERATORS[0]}",
        f"每个跨出主机 {{host}} 的通信算子，{_OPERATORS[1]}",
    ),
    "operators_between_hosts": (
        f"Every operator between hosts {{hosts:and}} {_OPERATORS[0]}",
        f"主机 {{hosts:and}} 之间的每个通信算子，{_OPERATORS[1]}",
    ),
    "operators_of_group": (
        f"Communication among ranks {{ranks:listed}} {_OPERATORS[0]}",
        f"卡 {{ranks:listed}} 之间的集合通信{_OPERATORS[1]}",
    ),
    "operators_of_groups": (
        f"Communication among {{n_groups}} groups {_OPERATORS[0]}",
        f"{{n_groups}} 个通信域的集合通信{_OPERATORS[1]}",
    ),
    "no_matrix": (
        "Without communication_matrix.json the link itself cannot be told.",
        "没有 communication_matrix.json，无法定位到具体链路。",
    ),
    "stood_still_together": (
        "In the same steps {n_groups} groups stood still for as long: one event, so they are fixed together.",
        "同样的步中有 {n_groups} 个通信域停顿同样长的时间：属于同一事件，一并计算。",
    ),
    "operators_took_long": (
        f"{{n_operators}} {{op_type}} among ranks {{first}} to {{last}} {_TOOK[0]} {{when}}.",
        f"卡 {{first}} 至 {{last}} 之间的 {{n_operators}} 个 {{op_type}} {_TOOK[1]}（{{when}}）。",
    ),
    "operators_took_long_between": (
        f"{{n_operators}} {{op_type}} from rank {{src}} to rank {{dst}} {_TOOK[0]} {{when}}.",
        f"卡 {{src}} 到卡 {{dst}} 的 {{n_operators}} 个 {{op_type}} {_TOOK[1]}（{{when}}）。",
    ),
    "transfer_took_long": (
        f"A transfer from rank {{src}} to rank {{dst}} ({{transport}}, {{op_type}}) {_TOOK[0]} {{when}}.",
        f"卡 {{src}} 到卡 {{dst}} 的一次传输（{{transport}}，{{op_type}}）{_TOOK[1]}（{{when}}）。",
    ),
    "more_links": (
        "{n_links} more {n_links:link has|links have} such transfers.",
        "另有 {n_links} 条链路出现同样的传输。",
    ),
    "packets_lost": (
        "Packets were probably lost and sent again.",
        "可能发生丢包重传。",
    ),
    "host_link_stopped": (
        "A link inside the host stood still, or the whole host did.",
        "主机内的链路或整台主机曾停顿。",
    ),
    "rank_pauses": (
        "{who:capital} pauses for {length_us:ms} {when}; its peers do not.",
        "{who}停顿 {length_us:ms}（{when}）；同类没有停顿。",
    ),
    "rank_pauses_regularly": (
        "{who:capital} pauses for {length_us:ms} every {every_n_steps} steps; its peers do not.",
        "{who}每 {every_n_steps} 步停顿 {length_us:ms}；同类没有停顿。",
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
        "Holders of experts differ by {spread_share:percent} in computing in every step; ranks "
        "{ranks:ranges} have "
        "{more_share:percent} more than usual.",
        "各专家所在卡的计算时间每步都相差 {spread_share:percent}；卡 {ranks:ranges} 比通常多 "
        "{more_share:percent}。",
    ),
    **WHOLE_JOB,
    "could_be_covered": (
        "Covered by computing, it would save {cost_us:ms} a step.",
        "若被计算掩盖，每步可节省 {cost_us:ms}。",
    ),
    "host_alone_late": (
        "Host {host} begins every step {own_us:ms} late, all others {others_us:ms}. All ranks of its "
        "stage are on it: it may be the host's input, or what this stage prepares.",
        "主机 {host} 每步开始前有 {own_us:ms}，其他主机为 {others_us:ms}。该 stage 的所有卡都在这台主机上："
        "可能是该主机的输入慢，也可能是该 stage 自身的准备工作。",
    ),
    "host_alone_idle": (
        "Devices of host {host} idle {own_us:ms} a step between operators, all others {others_us:ms}. All "
        "ranks of its stage are on it: it may be the host, or how this stage's operators are dispatched.",
        "主机 {host} 的设备每步在算子之间空闲 {own_us:ms}，其他主机为 {others_us:ms}。该 stage 的所有卡都在"
        "这台主机上：可能是该主机慢，也可能是该 stage 的算子下发方式。",
    ),
    "exposed": (
        f"{_EXPOSED[0]} waits for each other. Most data moves in each {{role:term}}.",
        f"{_EXPOSED[1]}用于相互等待。数据主要在{{role:term}}中传输。",
    ),
    "exposed_of_some_ranks": (
        f"{_EXPOSED[0]} waits for each other and for ranks without files. Most data moves in each "
        f"{{role:term}}.",
        f"{_EXPOSED[1]}用于相互等待以及等待没有文件的卡。数据主要在{{role:term}}中传输。",
    ),
    "small_operators": (
        "{n_a_step} {op_type} of {size_bytes:mb} a step in each {role:term} take {time_us:ms}: latency, "
        "not bandwidth, "
        "is what they cost.",
        "每个{role:term}每步有 {n_a_step} 个 {size_bytes:mb} 的 {op_type}，共耗时 {time_us:ms}："
        "开销在时延而非带宽。",
    ),
    "cost_is_bound": (
        "The cost is an upper bound: there are no operators to replay.",
        "损失为上限：没有可重放的算子。",
    ),
    "cost_not_replayable": (
        "Its steps cannot be replayed well enough to quote a cost.",
        "这些步无法准确重放，因此不给出损失。",
    ),
    "cost_not_explained": (
        "Its step lasted that much longer, which the replay does not explain: no cost is quoted.",
        "该步确实长了这么多，但重放无法解释，因此不给出损失。",
    ),
    "late_even_so": (
        "The replay does not show what waits for it, yet it is {cost_us:ms} a step later than all that nobody "
        "suspects: it costs that much at most.",
        "重放未显示谁在等它，但它每步比未被怀疑者晚 {cost_us:ms}（上限）。",
    ),
    "hidden": (
        "Hidden behind costlier findings: once they are fixed, it costs {cost_us:ms}.",
        "被损失更大的发现掩盖：修复它们之后，本项每步损失 {cost_us:ms}。",
    ),
}
_WHO: Template = ("rank {rank}", "卡 {rank}")
_WHO_AND_HOST: Template = ("rank {rank} (host {host})", "卡 {rank}（主机 {host}）")
_EVERY_STEP: Template = ("in every step", "每一步")
_ONLY_STEP: Template = ("in the only step", "仅有的一步")
_SOME_STEPS: Template = (
    "in {steps:step|steps} {steps:ranges} ({steps:n} of {n_steps})",
    "步 {steps:ranges}，共 {n_steps} 步中的 {steps:n} 步",
)
_ONE_STEP: Template = ("in {steps:step|steps} {steps:ranges}", "步 {steps:ranges}")
_GROWING: Template = ("more and more from step to step", "逐步加重")


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
    }
    sentences = []
    for one in finding.facts:
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


def _ends(finding: Finding) -> tuple[int, ...]:
    if not finding.links:
        return ()
    first = finding.links[0]
    return tuple(sorted((first.src, first.dst)))
