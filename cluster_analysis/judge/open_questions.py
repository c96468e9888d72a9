"""Open questions: missing data, and losses that are too costly to call the job healthy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.gates import lie_apart
from cluster_analysis.judge.measures.slow_units import Observations, units_of
from cluster_analysis.judge.measures.transfers import Mended, Transfers
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, codes, numbers
from cluster_analysis.numeric.sorting import distinct, rows_at
from cluster_analysis.numeric.stats import group_medians, mean_lead, median
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables.operations import record_of
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, TWICE
from cluster_analysis.thresholds.judging import LATE_SHARE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import Finding


def can_judge(view: JobView, limits: Thresholds) -> bool:
    """Whether any role has enough ranks with readable times to compare them."""
    counts = np.bincount(view.role[_has_times(view) & (view.role >= 0)])
    return bool(counts.max(initial=0) > limits.min_peers)


def _has_times(view: JobView) -> BoolArray:
    return np.asarray(np.isfinite(view.step_us).any(axis=1))


def what_is_missing(view: JobView, evidence: JobEvidence) -> list[Fact]:
    """Notes on missing data."""
    notes = []
    if not _has_times(view).any():
        notes.append(fact("no_step_times"))
    elif not np.isfinite(view.computing_us).any():
        notes.append(fact("steps_as_a_whole"))
    if view.graph is None:
        notes.append(fact("no_operators"))
    elif not evidence.links.num_rows:
        notes.append(fact("no_communication_matrix"))
    n_ranks, n_read = view.expected_ranks, len(view.ranks)
    if n_ranks > n_read:
        notes.append(fact("ranks_missing", n_read=n_read, n_ranks=n_ranks, n_missing=n_ranks - n_read))
    if len(view.steps) < 3:
        notes.append(fact("few_steps", n_steps=len(view.steps)))
    return notes


def few_peers(case: Case, found: Sequence[Suspect]) -> list[Fact]:
    """A note on ranks with too few peers to be judged by their computing."""
    for local in (one for one in case.local_times if one.is_computing):
        n_peers = case.deviation(local, case.in_slow_hosts(local, found)).n_peers
        few, least = int((n_peers < case.limits.min_peers).sum()), int(case.limits.min_peers)
        return [fact("few_peers", n_ranks=few, min_peers=least)] if few else []
    return []


def open_questions(
    view: JobView, evidence: JobEvidence, findings: Sequence[Finding], limits: Thresholds,
    copied_share: float = 0.0,
) -> list[Fact]:  # fmt: skip
    """Notes on time that may have been lost to a fault: too much of it to call the job healthy.

    `copied_share` is what the replay merely copies of all waiting.
    """
    if any(one.is_alarm for one in findings):  # they say where the time went
        return []
    return [
        *_unexplained(view, findings, limits),
        *_unread_communication(view, evidence, limits),
        *(
            waits_for_absent(evidence.matched, view, limits.open_cost_share)
            or _long_steps(view, limits, copied_share)
        ),
    ]


def _unexplained(view: JobView, findings: Sequence[Finding], limits: Thresholds) -> list[Fact]:
    """Findings that may be costly faults (their upper cost counts) and no alarms: healthy is a promise."""
    step_ms = view.mean_step_us / 1e3
    # A cost may be off by the second share.
    least_ms = (limits.open_cost_share - limits.sure_cost_share) * step_ms
    costly = {
        one.id: _at_most_ms(one)
        for one in findings
        if lie_apart(one.cost_low_ms, one.cost_high_ms, step_ms) or _at_most_ms(one) >= least_ms
        if not one.is_alarm and _may_be_a_fault(view, one, 1e3 * least_ms)
    }
    if not costly or not step_ms > 0:
        return []
    absent = [one.id for one in findings if any(said.kind == "absent_members" for said in one.facts)]
    asked = "waited_for_others" if set(costly) <= set(absent) else "costly_unexplained"
    share = max(costly.values()) / step_ms
    n_steps = int(TWICE * max(len(view.steps), limits.min_steps_intermittent))
    return [fact(asked, findings=tuple(costly), step_share=share, n_steps=n_steps)]


def _may_be_a_fault(view: JobView, finding: Finding, least_us: float) -> bool:
    """Whether a host could be the reason: work that is uneven between stages, replicas or experts looks like
    slow hosts where each of them lies in one. Replicas that share a host show what is not the host's: they
    would be late together. A replica of one rank is a device, which no sample makes the first by far.
    """
    if finding.record.unit in ("stage", "expert"):
        return _lies_in_one_host(view, np.isin(view.ranks, finding.ranks))
    if finding.record.unit == "replica":
        replicas = [view.replica == one for one in np.unique(view.replica)]
        if len(replicas) == len(view.ranks) and mean_lead(view.computing_us).max() >= least_us:
            return True
        return all(_lies_in_one_host(view, one) for one in replicas) and not _differ_in_hosts(view, replicas)
    return finding.may_be_fault


def _at_most_ms(finding: Finding) -> float:
    """Upper cost of a finding; where unknown, the idle time of its host beyond the others'."""
    known = [one for one in (finding.cost_ms_per_step, finding.cost_high_ms) if one is not None]
    if known or finding.record.is_fault or not finding.evidence:
        return max(known, default=0.0)
    row = finding.evidence[0]
    return max(row.value - row.peers_median, 0.0) / 1e3


def _lies_in_one_host(view: JobView, inside: BoolArray) -> bool:
    return bool((view.host[inside] >= 0).all() and len(np.unique(view.host[inside])) == 1)


def _differ_in_hosts(view: JobView, replicas: Sequence[BoolArray]) -> bool:
    """Whether replicas of one host (each lies in one) differ at least half as much as those of two hosts."""
    host = np.array([view.host[one][0] for one in replicas])
    with np.errstate(invalid="ignore"):
        level = np.stack([median(np.log(view.computing_us[one]), 0) for one in replicas])
    level = level[:, np.isfinite(level).all(axis=0)]
    together = (host[:, None] == host[None]) & ~np.eye(len(host), dtype=bool)
    of_two = host[:, None] != host[None]
    if not together.any() or not of_two.any() or not level.size:
        return False
    apart = np.abs(level[:, None] - level[None]).mean(axis=2)
    return bool(apart[together].mean() >= HALFWAY * apart[of_two].mean())


def _unread_communication(view: JobView, evidence: JobEvidence, limits: Thresholds) -> list[Fact]:
    """Communication that is not matched over ranks, as their calls or groups are not known.

    A call has several ends, so a few such ranks hide little: the mean of all ranks counts. But links are told
    by one end: a rank without links and calls counts alone.
    """
    unread, graph = np.full(view.step_us.shape, np.inf), view.graph
    if graph is not None:
        own_us = np.where(graph.is_unmatched, graph.transfer_us, 0.0)[graph.operator]
        unread = rows_at(view.ranks, graph.ranks, graph.sum_by_cell(own_us), np.inf)
    unseen = np.isinf(unread).all(axis=1) & ~np.isin(view.ranks, evidence.links["rank"])
    unread = np.clip(view.uncovered_us, 0.0, unread)
    known = [one[np.isfinite(one)] for one in (unread, *unread[unseen])]
    share = float(max((one.mean() for one in known if one.size), default=0.0) / view.mean_step_us)
    if not share >= limits.open_cost_share:
        return []
    return [fact("unread_communication", n_ranks=int((unread > 0.0).any(axis=1).sum()), step_share=share)]


def uncompared_network(case: Case) -> list[Fact]:
    """Communication without a reference: how long it should take is not known.

    Links between the only two hosts; where no links of that reach were read, collectives without similar
    ones, whose members sent at unlike speeds. A slow network costs no more there than their time that
    computing does not cover.
    """
    view, graph, transfers = case.view, case.view.graph, case.transfers
    teams, seen = case.operators, case.network
    if graph is None or transfers is None or teams is None or seen is None:
        return []
    left = np.where(
        case.is_read(teams)[teams.unit],
        _known_by_links(case, transfers, seen), _known_by_operators(case, graph, teams, seen),
    )  # fmt: skip
    took_us = graph.sum_by_cell((graph.transfer_us * (1.0 - left))[graph.operator])
    exposed_us = rows_at(graph.ranks, view.ranks, view.uncovered_us, np.nan)
    share = float(np.fmin(took_us, exposed_us).max(axis=0).mean()) / view.mean_step_us
    if not share >= case.limits.open_cost_share:
        return []
    n_groups = len(np.unique(teams.group[left < 1.0]))
    return [fact("uncompared_network", n_groups=n_groups, step_share=share)]


def _known_by_links(case: Case, transfers: Transfers, seen: Observations) -> FloatArray:
    """How much of each operator's transfer (O,) is no slower than comparable links of the job."""
    hosts, is_between = case.hosts_of_units(seen)
    is_between &= seen.is_link
    left = np.where(is_between, 0.0, 1.0)
    if len(set(compress(hosts, is_between))) != 1:
        level = units_of(seen, case.limits).level  # no link is quicker than it was built
        quickest = np.sort(level[is_between & np.isfinite(level)])[:FEWEST_PEERS]
        if len(quickest) < FEWEST_PEERS or not quickest[-1] <= -np.log(TWICE):
            return np.ones_like(transfers.took_us)
        left = np.exp(np.where(is_between, np.fmin(quickest[-1] - level, 0.0), 0.0))
    return transfers.remaining([Mended(transfers, left)])


def _known_by_operators(case: Case, graph: Graph, teams: Observations, seen: Observations) -> FloatArray:
    """1 for each operator (O,) that has comparable ones among `seen`, in numbers of `teams`; else 0."""
    hosts, is_between = case.hosts_of_units(seen)
    alike = np.isfinite(seen.excess) & np.isfinite(seen.size_bytes) & ~seen.is_link[seen.unit]
    # Groups over the same hosts share what joins these: it makes all of them slow.
    across = {(kind, hosts[at]) for kind, at in zip(seen.kind, seen.unit, strict=True) if is_between[at]}
    n_ways = np.bincount([kind for kind, _ in across], minlength=len(seen.kinds))
    alike &= ~is_between[seen.unit] | (n_ways[seen.kind] > 1)
    compared = np.zeros((len(seen.groups), len(seen.kinds)), bool)
    compared[seen.group[alike], seen.kind[alike]] = True
    are_alike = np.array([case.slow_senders.get(name) == () for name in teams.groups], bool)
    is_known = compared[teams.group, teams.kind] | graph.is_message | are_alike[teams.group]
    return np.where(is_known, 1.0, 0.0)


def _long_steps(view: JobView, limits: Thresholds, copied_share: float) -> list[Fact]:
    """Steps in which all ranks communicate for longer than in others, though none of them was late.

    Delays of several ranks add up, so that a little may explain all; but no more than itself if it is not
    known which ranks most of the waiting was for.
    """
    if len(view.steps) < limits.min_steps_confident:
        return []
    local, exposed = view.local_us, view.uncovered_us
    with np.errstate(invalid="ignore"):
        longer = np.maximum(np.nan_to_num(np.fmin.reduce(exposed - _usual(view, exposed), axis=0)), 0.0)
        later = np.maximum(np.nan_to_num(np.fmax.reduce(local - _usual(view, local), axis=0)), 0.0)
        adds_up = (later >= LATE_SHARE * longer) & (copied_share <= HALFWAY)
        unexplained = np.where(adds_up, 0.0, np.maximum(longer - later, 0.0))
    if not unexplained.mean() >= limits.open_cost_share * view.mean_step_us:
        return []
    worst = int(np.argmax(unexplained))
    return [fact("long_step", longer_us=float(unexplained[worst]), step=view.steps[worst])]


def _usual(view: JobView, times_us: FloatArray) -> FloatArray:
    """What each rank has (R, S) in the middle of the steps with as many calls, or of all if none has."""
    usual = np.broadcast_to(median(times_us, 1)[:, None], times_us.shape)
    if view.graph is None:
        return usual
    program = distinct(np.bincount(view.graph.operator_step, minlength=len(view.steps)))[1]
    is_alone = np.bincount(program)[program] == 1
    return np.where(is_alone, usual, group_medians(times_us.T, program).T)


def waits_for_absent(matched: pa.Table, view: JobView, least_share: float) -> list[Fact]:
    """Tell how long groups waited for ranks without files: the longest wait in each step, and the worst.

    Empty if it is less than a share of the mean step, or no rank is missing. `matched` is of all steps.
    """
    (names, group), (kinds, kind) = codes(matched["group"]), codes(matched["op_type"])
    groups, read = view.topology.groups, set(view.ranks.tolist())
    members = (groups[name].ranks if name in groups else () for name in names)
    absent = [tuple(rank for rank in one if rank not in read) for one in members]
    # Waiting of all of them, at least: the rest is coming earlier than others. Records can be lost, too:
    # that is no rank without files.
    of_others_us = (numbers(matched["n_ranks"]) - 1) * numbers(matched["max_wait_us"])
    common_us = np.maximum(numbers(matched["total_wait_us"]) - of_others_us, 0.0)
    lacks = np.array([bool(ranks) for ranks in absent], bool)[group]
    is_message = np.array([record_of(name).is_message for name in kinds], bool)[kind]
    common_us[is_message | ~lacks] = 0.0
    steps, step = np.unique(matched["step"].to_numpy(), return_inverse=True)
    waited_us = np.zeros((len(steps), len(names)))
    np.add.at(waited_us, (step, group), common_us)
    share = float(waited_us.max(axis=1, initial=0.0).sum()) / len(view.steps) / view.mean_step_us
    if not waited_us.any() or not share >= least_share:
        return []
    worst, at = np.unravel_index(int(waited_us.argmax()), waited_us.shape)
    wait_us, ranks = float(waited_us[worst, at]), absent[at]
    return [fact("waits_for_absent", step_share=share, wait_us=wait_us, step=int(steps[worst]), ranks=ranks)]
