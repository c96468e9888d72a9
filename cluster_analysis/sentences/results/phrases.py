"""What reports say of a result, in both languages; the page's words are in `sentences/words.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.advice import advice
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.findings import summary
from cluster_analysis.sentences.headings import counted, say, words_of_page
from cluster_analysis.sentences.phrase import Phrase
from cluster_analysis.sentences.problems import reason
from cluster_analysis.sentences.results import wording
from cluster_analysis.sentences.results.costs import cost_of, format_share
from cluster_run.findings import Evidence, Finding, FindingsDocument, Place
from cluster_run.ids import HostId, format_number_ranges
from cluster_run.problem import Problem

#: Problems of one file, reason and advice: one of several ranks each, or one alone.
ProblemGroup = Sequence[Problem]


#: Names of evidence metrics, without unit → the name the page's own metrics have.
METRIC_NAMES = {
    "compute": "computing",
    "communication_not_overlapped": "exposed",
    "local": "gap",
}
_UNITS = {"us": "µs", "ms": "ms", "gbps": "GB/s", "bytes": "B", "share": "%", "mhz": "MHz", "ratio": "×"}


def split_unit(metric: str) -> tuple[str, str]:
    """Split `computing_us` into `computing` and `us`; the unit is empty where the name has none."""
    bare, _, unit = metric.rpartition("_")
    return (bare, unit) if bare and unit in _UNITS else (metric, "")


def metric_name(name: str) -> Phrase:
    """Return what a metric of an `Evidence` is called; one without an entry keeps its own name."""
    bare, _ = split_unit(name)
    key = f"metric.{METRIC_NAMES.get(bare, bare)}"
    if key in words_of_page():
        return say(key)
    text = bare.replace("_", " ")
    return Phrase(text, text)


def format_metric(metric: str, value: float) -> str:
    """Format a value in the unit that its metric's name ends in."""
    _, unit = split_unit(metric)
    if unit in ("us", "ms"):
        return format_ms(value / 1000 if unit == "us" else value)
    if unit == "share":
        return format_share(value)
    text = wording.format_number(value)
    return f"{text} {_UNITS[unit]}" if unit else text


def difference(evidence: Evidence) -> str:
    """Return how far the value is from the median of its peers, as `+22 %`."""
    if evidence.peers_median == 0:
        return "–"
    share = evidence.value / evidence.peers_median - 1
    return f"{100 * share:+.0f} %".replace("-", "−")


def finding_title(finding: Finding) -> Phrase:
    """Return what a finding is about and why, in a few words."""
    what = wording.subject(finding)
    english = what.en.removeprefix("the ").removeprefix("a ")
    first = Phrase(english[:1].upper() + english[1:], what.zh)
    if finding.record.part != "slow_devices":
        return first
    is_host_feeding = finding.record.subject == "host" and finding.cause == "dispatch"
    cause = say("cause.host.dispatch" if is_host_feeding else f"cause.{finding.cause}")
    return Phrase(f"{first.en}: {cause.en}", f"{first.zh}：{cause.zh}")


def headline(document: FindingsDocument) -> Phrase:
    """Return the verdict in one sentence, without the verdict's name."""
    run = document.run
    step = format_ms(run.step_ms)
    if document.verdict == "healthy":
        ranks = counted("ranks", run.ranks)
        hosts = say("hosts.unknown") if wording.lacks_hosts(run) else counted("hosts", max(1, run.hosts))
        costs = wording.listed_costs(document)
        if costs:
            return say("headline.healthy.costs", ranks=ranks, hosts=hosts, step=step, costs=costs)
        return say("headline.healthy", ranks=ranks, hosts=hosts, step=step)
    if document.verdict == "unknown":
        return say("headline.unknown", why=wording.unknown_reason(document))
    lost, bound = wording.lost_in_all(document), wording.bound_of_costliest(document)
    if bound is not None:
        whom = wording.subject(document.findings[0])
        lost_to = {"lost": bound.phrase(run.step_ms), "share": bound.share(run.step_ms), "subject": whom}
        return say("headline.degraded.bound", step=step, **lost_to)
    if lost is None:
        return say("headline.degraded.plain")
    worst = document.findings[0]
    return say(
        "headline.degraded",
        step=step,
        lost=lost.phrase(run.step_ms),
        share=lost.share(run.step_ms),
        largest=cost_of(worst).phrase(run.step_ms),
        subject=wording.subject(worst),
    )


def page_title(document: FindingsDocument) -> Phrase:
    """Return what a tab of the browser shows: the verdict and the run it is about."""
    parts = [say(f"verdict.{document.verdict}"), say("page.title")]
    if name := wording.plain(document.run.name):
        parts.insert(1, Phrase(name, name))
    return Phrase(" · ".join(one.en for one in parts), " · ".join(one.zh for one in parts))


def run_phrases(document: FindingsDocument) -> tuple[Phrase, ...]:
    """Return what was analysed: ranks, hosts, steps, parallel sizes, sources."""
    run = document.run
    ranks = counted("ranks", run.ranks)
    if run.expected_ranks > run.ranks:
        ranks = say("run.ranksof", n=f"{run.ranks:,}", expected=f"{run.expected_ranks:,}")
    hosts = counted("hosts", run.hosts) if run.hosts else say("run.hosts.unknown")
    parts = [ranks, *([hosts] if run.hosts or wording.lacks_hosts(run) else [])]
    if run.steps:
        parts.append(
            say("run.steps" if len(run.steps) > 1 else "run.step", steps=format_number_ranges(run.steps))
        )
    plain = [text for text in (wording.parallel_sizes(run), ", ".join(run.sources)) if text]
    return (*parts, *(Phrase(text, text) for text in plain))


def host_phrase(host: HostId, result: AnalysisResult) -> Phrase:
    """Return `host 3`, with its address where that may be shown."""
    name = wording.host_name(host, result).removeprefix("host ")
    return say("map.host", host=Phrase(name, name.replace(" (", "（").replace(")", "）")))


def compared_part(most_rank: int | None, compared_us: float, named: Finding | None) -> Phrase:
    """Return what one rank has of a part of the step: the one that a finding names, or that with most."""
    most = say("rank", rank=most_rank)
    who = _who(named) if named and most_rank is None else most
    return say("step.of", who=who, value=format_ms(compared_us / 1000))


def compared_note(named: Finding | None) -> Phrase:
    """Return whose times stand below those of the mean step."""
    if named is None:
        return say("step.compared.most")
    return say("step.compared.named", who=_who(named))


def problem_groups(document: FindingsDocument) -> list[ProblemGroup]:
    """Group problems that are reported together, in order of the first; findings.json keeps a row a rank."""
    group: dict[object, list[Problem]] = {}
    for one in document.problems:
        place = one.host if one.rank is None else ""
        group.setdefault((one.why, one.also, one.advice, one.file, one.rank is None, place), []).append(one)
    return list(group.values())


def problem_places(group: ProblemGroup, result: AnalysisResult) -> list[Phrase]:
    """Return whose problem it is: the host where it is one, and the ranks."""
    hosts = {one.host for one in group}
    ranks = {one.rank for one in group if one.rank is not None}
    first = group[0]
    places = []
    if len(hosts) == 1 and first.host is not None:
        places.append(host_phrase(first.host, result))
    if len(ranks) > 1 and len(ranks) >= result.document.run.expected_ranks:
        places.append(say("all_ranks", n=len(ranks)))
    elif ranks:
        places.append(say("whom.rank", ranks=tuple(sorted(ranks))))
    return [Phrase(one.en, one.zh.strip()) for one in places]


def problem_phrase(group: ProblemGroup, result: AnalysisResult) -> Phrase:
    """Return it as one line: where, why, and what to do."""
    file = wording.plain(group[0].file)
    places = [*problem_places(group, result), *([Phrase(file, file)] if file else [])]
    why, advised = reason(group[0]), advice(group[0])
    english, chinese = (", ".join(one.en for one in places), "，".join(one.zh for one in places))
    english, chinese = (f"{english}: " if places else "", f"{chinese}：" if places else "")
    english, chinese = english + wording.plain(why.en), chinese + wording.plain(why.zh)
    if not advised.en:
        return Phrase(english, chinese)
    return Phrase(f"{english} ({wording.plain(advised.en)})", f"{chinese}（{wording.plain(advised.zh)}）")


def verdict_sentence(document: FindingsDocument) -> Phrase:
    """Return the verdict with its name, in one sentence."""
    english = wording.verdict_sentence(document)
    if document.verdict == "unknown":
        return Phrase(english, say("could_not_tell", why=wording.unknown_reason(document)).zh)
    name = say(f"verdict.{document.verdict}").zh
    if document.verdict == "degraded" and document.findings and not _says_what_is_lost(document):
        return Phrase(english, f"{name}：{wording.plain(summary(document.findings[0]).zh)}")
    return Phrase(english, f"{name}：{headline(document).zh}")


def _says_what_is_lost(document: FindingsDocument) -> bool:
    return (wording.best_saving_ms(document), wording.bound_of_costliest(document)) != (None, None)


def run_line(document: FindingsDocument) -> Phrase:
    """Return what was analysed, in one line."""
    chinese = " · ".join(wording.plain(one.zh) for one in run_phrases(document))
    return Phrase(wording.run_line(document), chinese)


def named(finding: Finding, result: AnalysisResult) -> Phrase:
    """Return who a finding is about."""
    english = wording.named(finding, result)
    if finding.record.subject in ("host", "host_pair", "nic", "uplink") and finding.hosts:
        hosts = (host_phrase(host, result).zh for host in finding.hosts)
        return Phrase(english, "、".join(hosts))
    if finding.links or not finding.ranks:
        return Phrase(english, english)
    return Phrase(english, say("ranks", ranks=format_number_ranges(finding.ranks)).zh)


def _who(finding: Finding) -> Phrase:
    """Return `rank 13` or `host 2`."""
    if finding.record.subject == "host" and finding.hosts:
        return say("map.host", host=", ".join(map(wording.plain, finding.hosts)))
    return say("rank", rank=format_number_ranges(finding.ranks))


def replay_phrase(name: str) -> Phrase:
    """Return what a figure about the replay means; one without an entry keeps its own name."""
    key = f"replay.{name}"
    plain = name.replace("_", " ")
    return say(key) if key in words_of_page() else Phrase(plain, plain)


def header_phrases(document: FindingsDocument, analysed: str | None = None) -> tuple[Phrase, ...]:
    """Return the facts that are known; `analysed` where the document holds no time of its own."""
    run = document.run
    path = run.path or run.name
    times = (("run.captured", moment(run.captured)), ("run.analysed", moment(run.analysed or analysed)))
    shown = [(say(key), value) for key, value in times if value]
    return (
        *([Phrase(path, path)] if path else []),
        *(Phrase(f"{what.en} {value}", f"{what.zh} {value}") for what, value in shown),
    )


def moment(text: str | None) -> str:
    """Return `2026-05-13 12:00:00` for a moment in ISO 8601; a zone is named where it is known."""
    return (text or "").replace("T", " ").replace("Z", " UTC")


def locator(result: AnalysisResult) -> Callable[[Place], Phrase]:
    """Return a function that tells a place: `rank 13 = host 2 / device 5`."""

    def locate(place: Place) -> Phrase:
        rank = say("rank", rank=place.rank)
        parts = []
        if place.host is not None:
            address = result.addresses.get(place.host)
            parts.append(Phrase(address, address) if address else say("map.host", host=place.host))
        if place.device is not None:
            parts.append(say("device", device=place.device))
        if not parts:
            return rank
        where = Phrase(" / ".join(one.en for one in parts), " / ".join(one.zh for one in parts))
        return say("locator", rank=rank, place=where)

    return locate
