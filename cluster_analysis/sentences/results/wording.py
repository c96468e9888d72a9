"""The verdict in English, and how numbers, ranks and hosts are written; `phrases` speaks both languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.findings import summary
from cluster_analysis.sentences.headings import say
from cluster_analysis.sentences.notes import reasons, why_open
from cluster_analysis.sentences.phrase import Phrase
from cluster_analysis.sentences.results.costs import Cost, cost_of
from cluster_analysis.sentences.terms import KINDS
from cluster_run.findings import WARNING_COST_SHARE, Finding, FindingsDocument, RunInfo
from cluster_run.ids import HostId, format_number_ranges

#: Problems of a rank that cost its links only: its times are known, and compared. One alone has no links.
_NO_DAMAGE = ("matrix_not_there", "no_link_in_it")
#: Control characters of a name would move the cursor or break a table.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return `text` on one line, without characters that steer a terminal or reverse its writing."""
    return _CONTROL.sub(" ", text)


def format_number(value: float) -> str:
    """Format a measured number with four significant digits and grouped thousands."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def count(number: int, noun: str) -> str:
    """Return `1 rank`, `2 ranks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_ranks(ranks: Iterable[int]) -> str:
    """Return `rank 15` or `ranks 8-15`."""
    ordered = sorted(set(ranks))
    noun = "rank" if len(ordered) == 1 else "ranks"
    return f"{noun} {format_number_ranges(ordered)}" if ordered else ""


def format_link_ends(finding: Finding) -> str:
    """Return `3 → 11`, `3 ↔ 11` where both directions are named, `3 → 11 (+2)` for three pairs."""
    first = finding.links[0]
    pairs = {frozenset((link.src, link.dst)) for link in finding.links}
    both = any((link.src, link.dst) == (first.dst, first.src) for link in finding.links)
    more = f" (+{len(pairs) - 1})" if len(pairs) > 1 else ""
    return f"{first.src} {'↔' if both else '→'} {first.dst}{more}"


def host_name(host: HostId, result: AnalysisResult) -> str:
    """Return the address of a host where it may be shown, else its mapped number."""
    address = result.addresses.get(host)
    return f"host {plain(host)} ({plain(address)})" if address else f"host {plain(host)}"


def named(finding: Finding, result: AnalysisResult) -> str:
    """Return who a finding is about: hosts, links or ranks, at most three of them by name."""
    if finding.record.subject in ("host", "host_pair", "nic", "uplink") and finding.hosts:
        return _listed([host_name(host, result) for host in finding.hosts])
    if finding.links:
        transports = sorted({plain(link.transport) for link in finding.links})
        return f"{format_link_ends(finding)} ({', '.join(transports)})"
    if finding.ranks:
        return format_ranks(finding.ranks)
    return _listed([host_name(host, result) for host in finding.hosts])


def verdict_sentence(document: FindingsDocument) -> str:
    """Return the verdict in one sentence. Healthy and unknown never look alike."""
    run = document.run
    step = f"a step takes {format_ms(run.step_ms)}" if run.step_ms is not None else "no step time"
    if document.verdict == "unknown":
        return say("could_not_tell", why=unknown_reason(document)).en
    if document.verdict == "healthy":
        where = f" on {count(run.hosts, 'host')}" if run.hosts else ""
        costs = listed_costs(document)
        more = f"; {costs.en}" if costs else ""
        return f"Healthy: {count(run.ranks, 'rank')}{where} keep pace, {step}{more}."
    worst = document.findings[0] if document.findings else None
    lost, bound = lost_in_all(document), bound_of_costliest(document)
    if worst is not None and bound is not None:
        total = f"{bound.phrase(run.step_ms).en} ({bound.share(run.step_ms).en})"
        return f"Degraded: {step}; {total} of it is lost to {subject(worst).en}."
    if worst is None or lost is None:
        return (
            f"Degraded: {plain(summary(worst).en) if worst else step + ', and no single cause stands out.'}"
        )
    largest = "all" if len(document.findings) == 1 else cost_of(worst).phrase(run.step_ms).en
    total = f"{lost.phrase(run.step_ms).en} ({lost.share(run.step_ms).en}) of it is lost"
    return f"Degraded: {step}; {total}, {largest} of that to {subject(worst).en}."


def subject(finding: Finding) -> Phrase:
    """Return what a finding blames, to follow "lost to": `slow rank 5`, `the slow link 2 → 10`."""
    names = [plain(host) for host in finding.hosts]
    hosts = Phrase(" and ".join(names) if len(names) == 2 else _listed(names), ", ".join(names))
    numbers = format_number_ranges(finding.ranks)
    who = Phrase(numbers, numbers)
    if finding.record.subject == "nic":
        who = Phrase(format_ranks(finding.ranks), say("ranks", ranks=numbers).zh)
        if hosts.en and finding.ranks:
            who = say("where.ranks", ranks=Phrase(who.en, numbers), hosts=hosts)
        elif hosts.en:
            who = say("where.hosts", hosts=hosts)
        return say("subject.port" if is_port(finding) else "subject.slow_nic", who=who)
    if finding.record.subject in ("host", "host_pair", "uplink"):
        who = hosts
    elif finding.links:
        ends = format_link_ends(finding)
        who = Phrase(ends, ends)
    elif finding.record.subject == "link":
        who = Phrase(f"among {format_ranks(finding.ranks)}", numbers)
    return say(f"subject.{finding.kind}", who=who)


def kind_name(finding: Finding) -> Phrase:
    """Return what kind of trouble a finding is, in two words."""
    return Phrase(*KINDS["slow_port" if finding.kind == "slow_nic" and is_port(finding) else finding.kind])


def is_port(finding: Finding) -> bool:
    """Return whether a slow network card is the port to other devices of its host, which no network is at."""
    return bool(finding.links) and all(link.transport.upper() != "RDMA" for link in finding.links)


def listed_costs(document: FindingsDocument) -> Phrase | None:
    """Return what findings of a healthy job cost that are worth a warning: the work's own, and others.

    Costs of the work are nobody's fault; a rank, host or link that is listed may be slow all the same.
    """
    step_ms = document.run.step_ms or 0.0
    least_ms = WARNING_COST_SHARE * step_ms
    work_ms = work_saving_ms(document)
    suspects = [one for one in may_be_faults(document) if (one.cost_ms_per_step or 0.0) >= least_ms]
    parts = [say("work_saves", ms=format_ms(work_ms))] if work_ms >= least_ms else []
    if suspects:
        most = max(suspects, key=lambda one: one.cost_ms_per_step or 0.0)
        key = "may_cost" if len(suspects) == 1 else "may_cost_most"
        parts.append(say(key, who=whom(most), ms=cost_of(most).phrase(step_ms)))
    if not parts or not step_ms:
        return None
    return Phrase("; ".join(one.en for one in parts), "；".join(one.zh for one in parts))


def whom(finding: Finding) -> Phrase:
    """Return what a finding is about, without saying that it is slow: `rank 9`, `the link 2 → 10`."""
    subject: str = finding.record.subject
    if subject == "nic" and is_port(finding):
        subject = "port"
    if subject == "job" or (subject == "link" and not finding.links):
        subject = "host" if finding.hosts and not finding.separable else "rank"
    hosts = ", ".join(map(plain, finding.hosts))
    link = format_link_ends(finding) if finding.links else ""
    return say(f"whom.{subject}", ranks=finding.ranks, hosts=hosts, link=link)


def best_saving_ms(document: FindingsDocument) -> float | None:
    """Return what a step would save if every finding were put right, as the last cumulative saving says."""
    savings = [one.cumulative_saving_ms for one in document.findings if one.cumulative_saving_ms is not None]
    return max(savings) if savings else None


def lost_in_all(document: FindingsDocument) -> Cost | None:
    """Return what all findings cost together, where it is known.

    It is the saving of repairing all of them; where that alone is no warning's cost, up to the largest upper
    cost of one.
    """
    step_ms, saving_ms = document.run.step_ms, best_saving_ms(document)
    if not step_ms or saving_ms is None or not document.findings:
        return None
    least_ms = WARNING_COST_SHARE * step_ms
    most_ms = max((cost_of(one).high_ms or 0.0 for one in document.findings if one.is_alarm), default=0.0)
    return Cost(saving_ms, most_ms if saving_ms < least_ms <= most_ms else saving_ms)


def bound_of_costliest(document: FindingsDocument) -> Cost | None:
    """Return what the costliest finding may cost, where nothing was replayed that says what all cost."""
    costliest = document.findings[0] if document.findings else None
    if costliest is None or not document.run.step_ms or best_saving_ms(document) is not None:
        return None
    return None if costliest.cost_ms_per_step is None else cost_of(costliest)


def work_saving_ms(document: FindingsDocument) -> float:
    """Return what findings about the work would save: what each adds to those above it."""
    saving_ms = reached_ms = 0.0
    for one in document.findings:
        gain_ms = max((one.cumulative_saving_ms or 0.0) - reached_ms, 0.0)
        reached_ms += gain_ms
        saving_ms += 0.0 if one.may_be_fault else gain_ms
    return saving_ms


def may_be_faults(document: FindingsDocument) -> list[Finding]:
    """Return the findings that name a rank, a host or a link which may be slow."""
    return [one for one in document.findings if one.may_be_fault]


def lacks_hosts(run: RunInfo) -> bool:
    """Return whether nothing tells on which hosts the ranks ran, and that matters."""
    return not run.hosts and run.ranks > 1


def run_line(document: FindingsDocument) -> str:
    """Return what was analysed, in one line."""
    run = document.run
    ranks = count(run.ranks, "rank")
    if run.expected_ranks > run.ranks:
        ranks = f"{run.ranks:,} of {count(run.expected_ranks, 'rank')}"
    steps = (
        f"{count(len(run.steps), 'step')} ({format_number_ranges(run.steps)})" if run.steps else "no steps"
    )
    hosts = count(run.hosts, "host") if run.hosts else "hosts unknown" if lacks_hosts(run) else ""
    parts = [ranks, hosts, steps, parallel_sizes(run), ", ".join(map(plain, run.sources))]
    return " · ".join(part for part in parts if part)


def parallel_sizes(run: RunInfo) -> str:
    """Return `TP 4 × PP 2 × DP 2`."""
    sizes = run.parallel
    named = (("TP", sizes.tp), ("PP", sizes.pp), ("DP", sizes.dp), ("CP", sizes.cp), ("EP", sizes.ep))
    return " × ".join(f"{name} {size}" for name, size in named if size > (name in ("CP", "EP")))


def unknown_reason(document: FindingsDocument) -> Phrase:
    """Return why the verdict is unknown: the ranks that are missing, then the question that is left open.

    Of several questions that which can be put right first; without one, the data of which there is too
    little.
    """
    run = document.run
    apart = reasons(document.notes, run.expected_ranks)
    question = why_open(apart.to_mend) or _lacking(document) or why_open(apart.bounds)
    if run.ranks < run.expected_ranks:
        few = say("too_few", n=run.ranks, expected=run.expected_ranks)
        return few if question is None else say("and_open", first=few, then=question)
    return question or say("one_alone" if run.ranks == 1 else "too_little", n=run.ranks, steps=len(run.steps))


def _lacking(document: FindingsDocument) -> Phrase | None:
    """Return what of the data of the ranks that were read is too little; None where nothing is."""
    run = document.run
    if not run.steps:
        return say("no_step")
    peers = next((int(one["min_peers"]) for one in document.notes if one.kind == "few_peers"), 0)  # type: ignore[arg-type]
    if peers and run.parallel.pp > 1 and run.ranks <= run.parallel.pp * peers:
        return say("all_have_few_peers", n=peers)
    harmless = _NO_DAMAGE if run.expected_ranks > 1 else (*_NO_DAMAGE, "no_communication_data")
    damaged = {one.rank for one in document.problems if one.rank is not None and one.kind not in harmless}
    if damaged:
        return say("damaged", n=len(damaged))
    return None


def _listed(names: Sequence[str], limit: int = 3) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
