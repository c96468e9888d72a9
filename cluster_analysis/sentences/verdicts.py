"""The verdict in one sentence, and its grounds: the cost of all findings, or the reason of `unknown`."""

from __future__ import annotations

from cluster_analysis.sentences.costs import Cost, cost_of
from cluster_analysis.sentences.subjects import plain, subject, whom
from cluster_run.findings import WARNING_COST_SHARE, Finding, FindingsDocument, RunInfo, gains_ms
from cluster_run.said.chinese import COLON, SEMICOLON
from cluster_words.amounts import format_ms
from cluster_words.findings import summary
from cluster_words.headings import counted, say
from cluster_words.notes import reasons, why_open
from cluster_words.phrase import Phrase, joined

#: Problems of a rank that cost its links only: its times are known, and compared. One alone has no links.
_NO_DAMAGE = ("matrix_not_there", "no_link_in_it", "no_operator_of_links", "links_differ")


def lacks_hosts(run: RunInfo) -> bool:
    """Return whether nothing tells on which hosts the ranks ran, and that matters."""
    return not run.hosts and run.ranks > 1


def headline(document: FindingsDocument) -> Phrase:
    """Return the verdict in one sentence, without its name: the page shows that apart."""
    run = document.run
    step = format_ms(run.step_ms)
    if document.verdict == "unknown":
        return say("headline.unknown", why=unknown_reason(document))
    if document.verdict == "healthy":
        ranks = counted("ranks", run.ranks)
        hosts = say("hosts.unknown") if lacks_hosts(run) else counted("hosts", max(1, run.hosts))
        costs = listed_costs(document)
        if costs:
            return say("headline.healthy.costs", ranks=ranks, hosts=hosts, step=step, costs=costs)
        return say("headline.healthy", ranks=ranks, hosts=hosts, step=step)
    lost, bound = lost_in_all(document), bound_of_costliest(document)
    cost = lost or bound
    if cost is None:
        return say("headline.degraded.plain")
    worst = document.findings[0]
    told = {"step": step, "lost": cost.phrase(run.step_ms), "share": cost.share(run.step_ms)}
    largest = cost_of(worst)
    if lost is None or len(document.findings) == 1 or largest == lost:
        return say("headline.degraded.one", **told, subject=subject(worst))
    return say("headline.degraded", **told, largest=largest.phrase(run.step_ms), subject=subject(worst))


def verdict_sentence(document: FindingsDocument) -> Phrase:
    """Return the verdict with its name, in one sentence. Healthy and unknown never look alike."""
    name, said = say(f"verdict.{document.verdict}"), headline(document)
    if document.verdict == "unknown":
        return say("verdict_and_why", verdict=name, why=unknown_reason(document))
    said = Phrase(said.en[0].lower() + said.en[1:], said.zh)
    if document.verdict == "degraded" and document.findings and not _has_cost(document):
        said = summary(document.findings[0])
    return joined((name, Phrase(plain(said.en), plain(said.zh))), COLON)


def _has_cost(document: FindingsDocument) -> bool:
    return (lost_in_all(document), bound_of_costliest(document)) != (None, None)


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
    return joined(parts, SEMICOLON)


def best_saving_ms(document: FindingsDocument) -> float | None:
    """Return what a step would save if every finding were put right, as the last cumulative saving says."""
    savings = [one.cumulative_saving_ms for one in document.findings if one.cumulative_saving_ms is not None]
    return max(savings) if savings else None


def lost_in_all(document: FindingsDocument) -> Cost | None:
    """Return what all alarms cost together, where it is known: what is no alarm is noticed, and not lost.

    From the saving of repairing all of them, or one alone if that is more, to the largest upper cost of one:
    no part is more than the whole.
    """
    alarms = [one for one in document.findings if one.is_alarm]
    if not document.run.step_ms or not alarms or best_saving_ms(document) is None:
        return None
    saving_ms = sum(gain_ms for one, gain_ms in gains_ms(document.findings) if one.is_alarm)
    least_ms = max(saving_ms, *(one.cost_ms_per_step or 0.0 for one in alarms))
    return Cost(least_ms, max(least_ms, *(cost_of(one).high_ms or 0.0 for one in alarms)))


def bound_of_costliest(document: FindingsDocument) -> Cost | None:
    """Return what the costliest finding may cost, where nothing was replayed that says what all cost."""
    costliest = document.findings[0] if document.findings else None
    if costliest is None or not document.run.step_ms or best_saving_ms(document) is not None:
        return None
    return None if costliest.cost_ms_per_step is None else cost_of(costliest)


def work_saving_ms(document: FindingsDocument) -> float:
    """Return what findings about the work add to what the others save."""
    return sum(gain_ms for one, gain_ms in gains_ms(document.findings) if not one.may_be_fault)


def may_be_faults(document: FindingsDocument) -> list[Finding]:
    """Return the findings that name a rank, a host or a link which may be slow."""
    return [one for one in document.findings if one.may_be_fault]


def unknown_reason(document: FindingsDocument) -> Phrase:
    """Return why the verdict is unknown: the ranks that are missing, then the question that is left open.

    Of several questions the one that can be put right counts first; without any, the data that are too few.
    """
    run = document.run
    apart = reasons(document)
    question = why_open(apart["mend"]) or _lacking(document) or why_open(apart["bear"])
    if run.ranks < run.expected_ranks:
        few = say("too_few", n=run.ranks, expected=run.expected_ranks)
        return few if question is None else say("and_open", first=few, then=question)
    return question or say("one_alone" if run.ranks == 1 else "too_little", n=run.ranks, steps=len(run.steps))


def _lacking(document: FindingsDocument) -> Phrase | None:
    """Return which data of the ranks that were read are too few; None if there are enough."""
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
