"""Headings around the findings, and all other words of reports, in both languages.

`words.json` has those of the page, which its scripts need as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cluster_analysis.sentences.phrase import Phrase, Template, fill

HEADINGS: Mapping[str, Template] = {
    "costs": ("cost a step", "每步损失"),
    "share": ("share", "占比"),
    "what": ("what", "类型"),
    "finding": ("finding", "发现项"),
    "small": ("Noticed, no reason for an alarm:", "仅供参考，无需告警："),
    "more_findings": (
        "{n} more in findings.json and report.html",
        "其余 {n} 项见 findings.json 与 report.html",
    ),
    "next": ("Next: ", "下一步："),
    "then": ("Then: ", "然后："),
    "where": ("Where: ", "位置："),
    "run": ("Run: ", "运行："),
    "more_places": ("and {n} more", "另有 {n} 处"),
    "host_is": ("host {host} is {address}", "主机 {host} 是 {address}"),
    "hosts_hint": (
        "--show-addresses names the hosts.",
        "用 --show-addresses 可显示主机地址。",
    ),
    "which_machine": (
        "Which machine is host {host}: {command} (or --show-addresses)",
        "主机 {host} 是哪台机器：{command}（或用 --show-addresses）",
    ),
    "baseline": ("Against the baseline", "与基线对比"),
    "nothing_compared": ("nothing could be compared", "无法比较"),
    "nothing_moved": ("nothing moved beyond noise", "没有超出噪声的变化"),
    "not_compared": ("not compared: {why}", "未比较：{why}"),
    "problems": (
        "{n} {n:problem|problems}: some data is missing, damaged or changed",
        "{n} 个问题：部分数据缺失、损坏或有改动",
    ),
    "more_problems": ("and {n} more", "另有 {n} 个"),
    "note.to_mend": ("Can be put right: {note}", "可以解决：{note}"),
    "note.bounds": ("Stays open: {note}", "仍不明确：{note}"),
    "note.to_know": ("Note: {note}", "说明：{note}"),
    "if_alike": (
        "{step} a step, {ideal} if all ranks were alike",
        "每步 {step}，若各卡一致则为 {ideal}",
    ),
    "lost_to": ("{cost} of the difference is {part}", "差值中 {cost} 来自{part}"),
    "lost_also_to": ("{cost} {part}", "{cost} 来自{part}"),
    "finding_columns": (
        "| # | severity | what | who | cost a step | share | saved so far |",
        "| # | 级别 | 类型 | 对象 | 每步损失 | 占比 | 累计可省 |",
    ),
    "evidence_columns": (
        "| metric | value | median of peers | MAD | peers |",
        "| 指标 | 数值 | 同类中位数 | MAD | 同类数 |",
    ),
    "change_columns": (
        "| what | metric | before | after | change | noise band |",
        "| 对象 | 指标 | 之前 | 之后 | 变化 | 噪声范围 |",
    ),
    "traits": (
        "{pattern:capital}, cause {cause}, confidence {confidence}.",
        "{pattern}，原因：{cause}，可信度：{confidence}。",
    ),
    "trend_columns": ("run|recorded|a step|lost|verdict|findings", "运行|录制时间|每步|损失|结论|发现项"),
    "problem_section": ("Problems", "问题"),
    "unknown_cost": ("unknown", "未知"),
    "at_most": ("up to {most}", "至多 {most}"),
    "at_least": ("at least {least}", "至少 {least}"),
    "from_to": ("{low}–{high}", "{low}～{high}"),
    "too_few": ("only {n} of {expected} ranks could be read", "{expected} 张卡中只读取了 {n} 张"),
    "and_open": ("{first}; {then}", "{first}；{then}"),
    "no_step": ("no step could be read", "没有可读的步"),
    "damaged": (
        "data of {n} {n:rank|ranks} is damaged or missing",
        "{n} 张卡的数据损坏或缺失",
    ),
    "all_have_few_peers": (
        "every rank has fewer than {n} peers in its own stage to be compared with",
        "每张卡在同一流水线阶段内可比的同类卡都少于 {n} 张",
    ),
    "one_alone": (
        "the job has one rank, and no other to compare it with",
        "作业只有一张卡，没有可比较的同类",
    ),
    "too_little": (
        "{n} {n:rank|ranks} and {steps} {steps:step|steps} are too little to judge by",
        "{n} 张卡、{steps} 步，不足以判断",
    ),
    "all_ranks": ("all {n} ranks", "全部 {n} 张卡"),
    "work_saves": ("the job itself could save {ms} of it", "作业自身可优化其中 {ms}"),
    "may_cost": ("{who} may cost {ms} of it: see below", "{who}可能占其中 {ms}，见下文"),
    "may_cost_most": (
        "{who} may cost {ms} of it, others less: see below",
        "{who}可能占其中 {ms}，另有占比更小者，见下文",
    ),
    "whom.rank": ("{ranks:rank|ranks} {ranks:ranges}", "卡 {ranks:ranges}"),
    "whom.host": ("{n_hosts:host|hosts} {hosts}", "主机 {hosts}"),
    "whom.link": ("the link {link}", "链路 {link}"),
    "whom.nic": ("the network card of {ranks:rank|ranks} {ranks:ranges}", "卡 {ranks:ranges} 的网卡"),
    "whom.slow_port": ("the port of {ranks:rank|ranks} {ranks:ranges}", "卡 {ranks:ranges} 的端口"),
    "whom.host_pair": ("the connection of hosts {hosts}", "主机 {hosts} 之间的链路"),
    "whom.uplink": ("the uplink of {n_hosts:host|hosts} {hosts}", "主机 {hosts} 的上行链路"),
    "whom.scattered_pauses": ("scattered pauses of {ranks:n} {ranks:rank|ranks}", "{ranks:n} 张卡的零散停顿"),
    "verdict_and_why": ("{verdict}: {why}.", "{verdict}：{why}。"),
}


@cache
def words_of_page() -> Mapping[str, Template]:
    """Return the words of the page by key."""
    text = Path(__file__).with_name("words.json").read_text("utf-8")
    return {key: (english, chinese) for key, (english, chinese) in json.loads(text).items()}


def say(key: str, **values: object) -> Phrase:
    """Return a heading, or words of the page.

    Raises:
        KeyError: there are none of this key, or a value is missing.
    """
    return fill(HEADINGS.get(key) or words_of_page()[key], values)


def counted(what: str, number: int) -> Phrase:
    """Return a number of ranks, hosts, steps, findings or problems."""
    return say(f"count.{what}.one") if number == 1 else say(f"count.{what}", n=f"{number:,}")


def term(words: Mapping[str, Template], name: str) -> Phrase:
    """Return a word of `sentences.terms` in both languages."""
    return Phrase(*words[name])


#: Headings of cluster-fleet around them, in the terminal and on its page.
OF_FLEET: Mapping[str, Template] = {
    "title": ("Fleet", "机群"),
    "fleet": (
        "{n_devices} {n_devices:device|devices} on {n_hosts} {n_hosts:host|hosts} in {n_runs} "
        "{n_runs:run|runs}, {begin} to {end}",
        "{n_hosts} 台主机、{n_devices} 个设备、{n_runs} 次运行，{begin} 至 {end}",
    ),
    "cost": (
        "; findings that name it cost {hours:.1f} device-hours",
        "；点名它的发现共损失 {hours:.1f} 设备小时",
    ),
    "empty": (
        "no run is in this fleet: nothing can be told (cluster-fleet add RUN)",
        "该机群中没有运行：无法判断（cluster-fleet add RUN）",
    ),
    "nobody": ("nobody is slow", "没有变慢的设备或主机"),
    "nobody_known": ("nobody is slow as far as can be told", "就现有数据而言，没有变慢的设备或主机"),
    "repeat": ("{host}: slow {n} times by its devices or itself", "{host}：本机或其设备变慢 {n} 次"),
    "unknown": (
        "{n} {n:device or host|devices or hosts} cannot be told yet: {n_few} in too few runs, {n_between} "
        "between healthy and slow",
        "{n} 个设备或主机尚无法判断：{n_few} 个运行太少，{n_between} 个介于正常与变慢之间",
    ),
    "maintenance": ("Next maintenance", "下次维护"),
    "known": ("what is known", "已知情况"),
    "state": ("state", "状态"),
    "hours": ("device-hours lost", "损失的设备小时"),
    "seen": ("last seen", "最近出现"),
    "hosts": ("Hosts over time", "各主机随时间的变化"),
    "map": (
        "The slowest device of each host, by its computing time relative to its peers. Hatched: in no run. "
        "{n} {n:host|hosts} of which nothing is told are left out.",
        "每台主机中最慢设备的计算时间（与同类相比）。斜线：没有运行。未列出无异常的 {n} 台主机。",
    ),
    "stories": ("Stories", "经过"),
    "jobs": ("In {n} {n:job|jobs} at all", "共出现在 {n} 个作业中"),
    "slow": ("slow", "慢"),
    "intermittent": ("intermittent", "时快时慢"),
    "repaired": ("repaired", "已恢复"),
    "healthy": ("healthy", "正常"),
}


def of_fleet(name: str, **values: object) -> Phrase:
    """Return what is said around what the fleet knows."""
    return fill(OF_FLEET[name], values)


#: What cluster-act says. What is written down is in English.
OF_ACT: Mapping[str, Template] = {
    "cost": ("{hours:.1f} device-hours so far", "迄今 {hours:.1f} 设备小时"),
    "cost_unknown": ("no finding has a cost yet", "尚无发现给出损失"),
    "share": ("{share:percent} of each step of that job", "该作业每步的 {share:percent}"),
    "of_run": ("{unit}: {finding} of run {run}", "{unit}：运行 {run} 的发现 {finding}"),
    # A case, and what is to be done about it.
    "due": (
        "{unit}\n  why: {evidence}\n  cost: {cost}\n  do: {do}\n  undo: {undo}",
        "{unit}\n  原因：{evidence}\n  损失：{cost}\n  执行：{do}\n  撤销：{undo}",
    ),
    "skipped": ("not {unit}: {why}\n  {evidence}", "不处理 {unit}：{why}\n  {evidence}"),
    "done_already": ("it is done already", "已经处理过"),
    "no_name": (
        "the name of its node is not known: collect again, or cluster-fleet add RUN --show-addresses "
        "(with the same --db)",
        "不知道其节点名：请重新采集，或使用 cluster-fleet add RUN --show-addresses（--db 相同）",
    ),
    "cleared": (
        "a probe has cleared it: it was as fast as its control",
        "探测已排除：它与对照设备一样快",
    ),
    "unconfirmed": (
        "one run names it and no other does: --probe it, or wait for more runs (--unconfirmed to act)",
        "只有一次运行点名：请用 --probe 探测，或等待更多运行（--unconfirmed 可直接处理）",
    ),
    "budget": (
        "the budget of {n} {n:node|nodes} a day is spent",
        "每天 {n} 个节点的额度已用完",
    ),
    # What was done.
    "nothing": ("nothing is to be done", "没有需要处理的"),
    "unjudged": (
        "the run could not be judged: whom it would name cannot be told",
        "该运行无法判断：不知道应处理谁",
    ),
    "not_done": (
        "nothing was done: --apply does it ({n_due} of {n_all})",
        "尚未执行：加 --apply 才会执行（{n_all} 项中的 {n_due} 项）",
    ),
    "not_undone": ("nothing was undone: --apply does it", "尚未撤销：加 --apply 才会撤销"),
    "empty_log": ("the log is empty: nothing was done or probed yet", "日志为空：尚未执行任何处理或探测"),
    "nothing_stands": ("nothing of ours stands there", "那里没有本工具所做的处理"),
    "done": ("done: {said}", "已执行：{said:said}"),
    "undone": ("undone: {said}", "已撤销：{said:said}"),
    "refused": ("refused: {said}", "被拒绝：{said:said}"),
    "uncertain": (
        "not known: {said}; it may have been done, and stands in the log as intended: call again, or --undo",
        "结果未知：{said:said}；可能已执行，因此在日志中保持 intended：请再次调用，或 --undo",
    ),
    "undo_uncertain": (
        "not known: {said}; it may have been undone, and still stands in the log: call again",
        "结果未知：{said:said}；可能已撤销，日志中仍保留：请再次调用",
    ),
    # What a probe found.
    "probed": (
        "{suspect} against {control}: {share:change} time ({low:change} to {high:change}, {n_pairs} pairs)",
        "{suspect} 与 {control} 相比：用时 {share:change}（{low:change} 至 {high:change}，{n_pairs} 对）",
    ),
    "probe_slow": ("{probed}: slow", "{probed}：较慢"),
    "probe_not_slow": ("{probed}: not slow", "{probed}：不慢"),
    "probe_open": ("{probed}: open: probe longer", "{probed}：无法判断，请延长探测"),
}


def of_act(name: str, **values: object) -> Phrase:
    """Return what cluster-act says."""
    return fill(OF_ACT[name], values)
