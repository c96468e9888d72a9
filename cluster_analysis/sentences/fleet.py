"""What the fleet says of a device or host, in both languages: findings quote it, cluster-fleet tells it."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_run.facts import Fact, FindingFact, FleetFact

_HOW_MUCH: Template = (
    "{level:change} ({low:change} to {high:change}) {metric:metric} over {n_runs} {n_runs:job|jobs}",
    "{metric:metric} {level:change}（{low:change} 至 {high:change}），共 {n_runs} 个作业",
)
_AND_MORE: Template = (
    "{n_episodes:|; slow # times so far}{by_clock:; its clock is lower as well|}"
    "{n_named:; named by # job of the last 30 days|; named by # jobs of the last 30 days}",
    "{n_episodes:|；迄今变慢 # 次}{by_clock:；其频率也较低|}"
    "{n_named:；最近 30 天有 # 个作业点名|；最近 30 天有 # 个作业点名}",
)
#: One a state of a unit.
STORIES: Mapping[FleetFact, Template] = {
    "fleet_slow": (
        f"{{unit}}: slow since {{is_born:its first job, |}}{{since}}, {_HOW_MUCH[0]}{_AND_MORE[0]}",
        f"{{unit}}：自 {{since}} {{is_born:（首个作业）|}}起变慢，{_HOW_MUCH[1]}{_AND_MORE[1]}",
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
        f"{{unit}}: too few jobs to tell, {_HOW_MUCH[0]}",
        f"{{unit}}：作业太少，无法判断，{_HOW_MUCH[1]}",
    ),
}
#: The same as sentences of a finding.
QUOTES: Mapping[FindingFact, Template] = {
    kind: (f"By the fleet, {english}.", f"据机群记录，{chinese}。")
    for kind, (english, chinese) in STORIES.items()
}


#: What cluster-fleet says around them, in the terminal and on its page.
HEADINGS: Mapping[str, Template] = {
    "title": ("Fleet", "机群"),
    "fleet": (
        "{n_devices} devices on {n_hosts} hosts in {n_runs} runs, {begin} to {end}",
        "{n_hosts} 台主机、{n_devices} 个设备、{n_runs} 次运行，{begin} 至 {end}",
    ),
    "cost": (
        "; findings that name it cost {hours:.1f} device-hours",
        "；点名它的发现共损失 {hours:.1f} 设备小时",
    ),
    "nobody": ("nobody is slow", "没有变慢的设备或主机"),
    "nobody_known": ("nobody is slow as far as can be told", "就现有数据而言，没有变慢的设备或主机"),
    "repeat": ("{host}: slow {n} times by its devices or itself", "{host}：本机或其设备变慢 {n} 次"),
    "unknown": (
        "{n} {n:device or host|devices or hosts}: too few runs to tell",
        "{n} 个设备或主机：运行太少，无法判断",
    ),
    "maintenance": ("Next maintenance", "下次维护"),
    "known": ("what is known", "已知情况"),
    "state": ("state", "状态"),
    "hours": ("device-hours lost", "损失的设备小时"),
    "seen": ("last seen", "最近出现"),
    "hosts": ("Hosts over time", "各主机随时间的变化"),
    "map": (
        "The slowest device of each host, by its computing time beside its peers. Hatched: in no run. "
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


def heading(name: str, **values: object) -> Phrase:
    """Return what is said around the stories."""
    return fill(HEADINGS[name], values)


def story(said: Fact) -> Phrase:
    """Return what is said of a unit."""
    return fill(STORIES[said.kind], dict(said.values))  # type: ignore[index]
