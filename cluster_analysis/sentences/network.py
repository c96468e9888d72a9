"""Sentences of findings on the network: one for each fact, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Template
from cluster_run.facts import FindingFact

_LINKS = (
    "takes {slower_share:percent} longer for the same bytes than {n_links} other {transport} "
    "{n_links:link|links} (seen {n_seen} {n_seen:time|times}).",
    "传输相同数据的时间比其他 {n_links} 条 {transport} 链路长 {slower_share:percent}（观测 {n_seen} 次）。",
)
_OPERATORS = (
    "takes {slower_share:percent} longer for the same bytes than {n_others} like it elsewhere.",
    "传输相同数据的时间比其他 {n_others} 个同类长 {slower_share:percent}。",
)
_UPLINK = (
    "The uplink of {hosts:host|the rack of hosts} {hosts:some}",
    "{hosts:主机|机架（主机} {hosts:some}{hosts: |）}的上行链路",
)
_SOME = "{n_operators} {op_type} {n_operators:operator|operators}"
_TOOK = ("took {took_us:ms} instead of {usual_us:ms}", "耗时 {took_us:ms}，通常为 {usual_us:ms}")

#: The sentences, with the values that those of `sentences.findings` have.
NETWORK: Mapping[FindingFact, Template] = {
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
        f"The {{transport}} port of {{who}} {_LINKS[0]}",
        f"{{who}}的 {{transport}} 端口{_LINKS[1]}",
    ),
    "port_sending": (
        f"The {{transport}} port of {{who}}, sending, {_LINKS[0]}",
        f"{{who}}的 {{transport}} 端口发送时，{_LINKS[1]}",
    ),
    "port_receiving": (
        f"The {{transport}} port of {{who}}, receiving, {_LINKS[0]}",
        f"{{who}}的 {{transport}} 端口接收时，{_LINKS[1]}",
    ),
    "host_pair": (
        f"The network between hosts {{hosts:and}} {_LINKS[0]}",
        f"主机 {{hosts:and}} 之间的网络{_LINKS[1]}",
    ),
    "host_pair_one_way": (
        f"The network from host {{hosts:to}} {_LINKS[0]}",
        f"主机 {{hosts:to}} 的网络{_LINKS[1]}",
    ),
    "uplink": (f"{_UPLINK[0]} {_LINKS[0]}", f"{_UPLINK[1]}{_LINKS[1]}"),
    "uplink_sending": (f"{_UPLINK[0]}, sending, {_LINKS[0]}", f"{_UPLINK[1]}发送时，{_LINKS[1]}"),
    "uplink_receiving": (f"{_UPLINK[0]}, receiving, {_LINKS[0]}", f"{_UPLINK[1]}接收时，{_LINKS[1]}"),
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
    "may_be_uplink": (
        "It may as well be the uplink of {others:host|hosts} {others:some}: not separable with this traffic, "
        "all of which uses both.",
        "也可能是主机 {others:some} 的上行链路：这些流量同时经过两者，无法区分。",
    ),
    "only_two_links": (
        "Only two of its links carry traffic: one of them alone may be the reason.",
        "其中只有两条链路有流量：可能仅是其中一条的问题。",
    ),
    "in_some_steps": (
        "It is so {when} only: other traffic probably shares it then.",
        "仅在以下步如此：{when}；当时可能有其他流量占用。",
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
        "Every operator that crosses the border of {hosts:host|the rack of hosts} {hosts:some} "
        f"{_OPERATORS[0]}",
        f"每个跨出{{hosts:主机|机架（主机}} {{hosts:some}} {{hosts:|）}}的通信算子，{_OPERATORS[1]}",
    ),
    "operators_between_hosts": (
        f"Every operator between hosts {{hosts:and}} {_OPERATORS[0]}",
        f"主机 {{hosts:and}} 之间的每个通信算子，{_OPERATORS[1]}",
    ),
    "operators_of_group": (
        f"Communication {{ranks:of rank|among ranks}} {{ranks:listed}} {_OPERATORS[0]}",
        f"卡 {{ranks:listed}} {{ranks:上|之间}}的集合通信{_OPERATORS[1]}",
    ),
    "no_matrix": (
        "Without communication_matrix.json it is told by operators, and by what ranks sent: the link itself "
        "is uncertain.",
        "没有 communication_matrix.json，只能根据通信算子和各卡发送的数据判断：具体链路不确定。",
    ),
    "stood_still_together": (
        "In the same steps {n_groups} groups stood still for as long: one event, so they are fixed together.",
        "同样的步中有 {n_groups} 个通信域停顿同样长的时间：属于同一事件，一并计算。",
    ),
    "operators_took_long": (
        f"{_SOME} {{ranks:of rank|among ranks}} {{ranks:ranges}} {_TOOK[0]} {{when}}.",
        f"卡 {{ranks:ranges}} {{ranks:上|之间}}的 {{n_operators}} 个 {{op_type}} {_TOOK[1]}（{{when}}）。",
    ),
    "operators_took_long_between": (
        f"{_SOME} from rank {{src}} to rank {{dst}} {_TOOK[0]} {{when}}.",
        f"卡 {{src}} 到卡 {{dst}} 的 {{n_operators}} 个 {{op_type}} {_TOOK[1]}（{{when}}）。",
    ),
    "absent_members": (
        "Other ranks take part whose files are not here: whom it waited for cannot be told.",
        "参与通信的其他卡没有文件，无法判断它在等待谁。",
    ),
    "packets_lost": (
        "Packets were probably lost and sent again.",
        "可能发生丢包重传。",
    ),
    "sent_again": (
        "The profiler confirms it: {n_retries} {n_retries:operator|operators} of rank {own_rank} had to be "
        "sent again, {others:.0f} on the other ranks.",
        "profiler 证实：卡 {own_rank} 有 {n_retries} 个通信算子被重传，其他卡为 {others:.0f} 个。",
    ),
    "card_counted": (
        "The network card of rank {own_rank} counted {n_counted} {metric:term}, those of other ranks "
        "{others:.0f}.",
        "卡 {own_rank} 的网卡统计到 {n_counted} 个{metric:term}，其他卡为 {others:.0f} 个。",
    ),
    "port_below_peers": (
        "Its hardware counters agree: at its best the {transport} port of rank {own_rank} was "
        "{lower_share:percent} below those of the other ranks.",
        "硬件计数一致：卡 {own_rank} 的 {transport} 端口峰值带宽比其他卡低 {lower_share:percent}。",
    ),
    "host_link_stopped": (
        "A link inside the host stood still, or the whole host did.",
        "主机内的链路或整台主机曾停顿。",
    ),
}
