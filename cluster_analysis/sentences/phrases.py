"""Phrases of reports on a result, in both languages; the page's words are in `cluster_words/words.json`."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.subjects import format_number, host_phrase, plain, subject
from cluster_analysis.sentences.verdicts import lacks_hosts
from cluster_run.findings import Evidence, Finding, FindingsDocument, RunInfo
from cluster_run.problem import Problem
from cluster_run.said.chinese import COLON, COMMA
from cluster_words.amounts import format_ms, format_share
from cluster_words.headings import counted, say, words_of_page
from cluster_words.phrase import Phrase, joined, short_ranges
from cluster_words.problems import advice, reason
from cluster_words.terms import TERMS

#: Problems of one file, reason and advice: one of several ranks each, or one alone.
ProblemGroup = Sequence[Problem]


#: Names of evidence metrics, without unit → the name the page's own metrics have.
METRIC_NAMES = {"compute": "computing", "communication_not_overlapped": "exposed", "local": "gap"}
_SIDE_BY_SIDE = (" · ", " · ")
_UNITS = {"us": "µs", "ms": "ms", "gbps": "GB/s", "bytes": "B", "share": "%", "mhz": "MHz", "ratio": "×"}


def split_unit(metric: str) -> tuple[str, str]:
    """Split `computing_us` into `computing` and `us`; the unit is empty where the name has none."""
    bare, _, unit = metric.rpartition("_")
    return (bare, unit) if bare and unit in _UNITS else (metric, "")


def metric_name(name: str) -> Phrase:
    """Return what a metric of an `Evidence` is called; one without an entry keeps its own name."""
    if name in TERMS:
        return Phrase(*TERMS[name])
    bare, _ = split_unit(name)
    return _said_or_itself(f"metric.{METRIC_NAMES.get(bare, bare)}", bare)


def _said_or_itself(key: str, name: str) -> Phrase:
    own = name.replace("_", " ")
    return say(key) if key in words_of_page() else Phrase(own, own)


def format_metric(metric: str, value: float) -> str:
    """Format a value in the unit that its metric's name ends in."""
    _, unit = split_unit(metric)
    if unit in ("us", "ms"):
        return format_ms(value / 1000 if unit == "us" else value)
    if unit == "share":
        return format_share(value)
    text = format_number(value)
    return f"{text} {_UNITS[unit]}" if unit else text


def difference(evidence: Evidence) -> str:
    """Return how far the value is from the median of its peers, as `+22 %`."""
    if evidence.peers_median == 0:
        return "–"
    share = evidence.value / evidence.peers_median - 1
    return f"{100 * share:+.0f} %".replace("-", "−")


def finding_title(finding: Finding) -> Phrase:
    """Return what a finding is about and why, in a few words."""
    what = subject(finding)
    english = what.en.removeprefix("the ").removeprefix("a ")
    first = Phrase(english[:1].upper() + english[1:], what.zh)
    if finding.record.part != "slow_devices":
        return first
    is_host_feeding = finding.record.subject == "host" and finding.cause == "dispatch"
    cause = say("cause.host.dispatch" if is_host_feeding else f"cause.{finding.cause}")
    return joined((first, cause), COLON)


def page_title(document: FindingsDocument) -> Phrase:
    """Return what a tab of the browser shows: the verdict and the run it is about."""
    parts = [say(f"verdict.{document.verdict}"), say("page.title")]
    if name := plain(document.run.name):
        parts.insert(1, Phrase(name, name))
    return joined(parts, _SIDE_BY_SIDE)


def run_phrases(document: FindingsDocument) -> tuple[Phrase, ...]:
    """Return what was analysed: ranks, hosts, steps, parallel sizes, sources."""
    run = document.run
    ranks = counted("ranks", run.ranks)
    if run.expected_ranks > run.ranks:
        ranks = say("run.ranksof", n=f"{run.ranks:,}", expected=f"{run.expected_ranks:,}")
    hosts = counted("hosts", run.hosts) if run.hosts else say("run.hosts.unknown")
    steps = counted("steps", len(run.steps))
    if run.steps:
        steps = say("run.steps", n=steps, steps=short_ranges(run.steps))
    parts = [ranks, *([hosts] if run.hosts or lacks_hosts(run) else []), steps]
    named = [plain(text) for text in (_parallel_sizes(run), ", ".join(run.sources)) if text]
    return (*parts, *(Phrase(text, text) for text in named))


def run_line(document: FindingsDocument) -> Phrase:
    """Return what was analysed, in one line."""
    return joined(run_phrases(document), _SIDE_BY_SIDE)


def _parallel_sizes(run: RunInfo) -> str:
    """Return `TP 4 × PP 2 × DP 2`."""
    sizes = run.parallel
    named = (("TP", sizes.tp), ("PP", sizes.pp), ("DP", sizes.dp), ("CP", sizes.cp), ("EP", sizes.ep))
    return " × ".join(f"{name} {size}" for name, size in named if size > (name in ("CP", "EP")))


def compared_part(most_rank: int | None, compared_us: float, named: Finding | None) -> Phrase:
    """Return what one rank has of a part of the step: the one that a finding names, or that with most."""
    most = say("rank", rank=most_rank)
    who = _who(named) if named and most_rank is None else most
    return say("step.of", who=who, value=format_ms(compared_us / 1000))


def compared_note(named: Finding | None) -> Phrase:
    """Return the ranks whose times stand below those of the mean step."""
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
    return places


def problem_phrase(group: ProblemGroup, result: AnalysisResult) -> Phrase:
    """Return it as one line: where, why, and what to do."""
    file = plain(group[0].file)
    places = [*problem_places(group, result), *([Phrase(file, file)] if file else [])]
    why, advised = reason(group[0]), advice(group[0])
    said = Phrase(plain(why.en), plain(why.zh))
    if places:
        said = joined([joined(places, COMMA), said], COLON)
    if not advised.en:
        return said
    return Phrase(f"{said.en} ({plain(advised.en)})", f"{said.zh}（{plain(advised.zh)}）")


def _who(finding: Finding) -> Phrase:
    """Return `rank 13` or `host 2`."""
    if finding.record.subject == "host" and finding.hosts:
        return say("map.host", host=", ".join(map(plain, finding.hosts)))
    return say("rank", rank=short_ranges(finding.ranks))


def replay_phrase(name: str) -> Phrase:
    """Return what a figure about the replay means; one without an entry keeps its own name."""
    return _said_or_itself(f"replay.{name}", name)


def header_phrases(document: FindingsDocument, analysed: str | None) -> tuple[Phrase, ...]:
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
