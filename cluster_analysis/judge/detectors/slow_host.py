"""Slow hosts: all ranks of a host are late, compared with ranks of the same role elsewhere.

Hosts are judged before ranks, by the median of their ranks, so that one bad rank does not condemn its
host and a bad host does not make eight bad ranks. The worst host is taken out before the next is judged:
where two hosts share a stage, a slow one makes half of the other one's peers slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.late import confirmed, late_suspect
from cluster_analysis.judge.measures.deviation import deviation_of, relative_to_other_hosts
from cluster_analysis.judge.measures.idle import lost_always_us
from cluster_analysis.judge.measures.local_times import LocalTime
from cluster_analysis.judge.suspects import Suspect, most_significant
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import MEDIAN_SE, group_medians, median, medians_by, sigma
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_analysis.thresholds.judging import IDLE_SIGMA
from cluster_run.facts import fact
from cluster_run.kinds import WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts that are slow in a local time, the worst first; if half of a host is late, that half."""
    for local in case.local_times:
        n_places = 1 + len(local.places)
        hosts = [one for whole in case.ways_to_compare(local) for _, one in _in_places(case, whole)]
        halves = [one for place in (local, *local.places) for one in _late_halves(case, place, local)]
        best = [*most_significant(hosts, n_places), *most_significant(halves, 2 * n_places)]
        yield from (confirmed(case.view, one, case.limits) for one in {one.key: one for one in best}.values())


def _in_places(case: Case, whole: LocalTime) -> Iterator[tuple[LocalTime, Suspect]]:
    """Hosts that are slow in all of a local time, or in a place of it: the other may hide them."""
    for place in (whole, *whole.places):
        yield from ((place, one) for one in host_suspects(case, place, whole, case.view.host < 0))


def _late_halves(case: Case, local: LocalTime, whole: LocalTime) -> Iterator[Suspect]:
    """Hosts half of whose ranks are late in idle time, the others not: one of two processors launches late.

    The middle of such a host is that of no rank. The later half of each host is compared with the later
    halves of others, as one half is always later.
    """
    if local.is_computing:
        return
    view, nobody = case.view, case.view.host < 0
    level = median(relative_to_other_hosts(case.series(local, nobody, view.host), view), 1)
    is_later = level >= group_medians(level, view.host)
    for one in host_suspects(case, local, whole, ~is_later):
        of_host = case.ranks_of([one])
        late, quick_us = np.flatnonzero(of_host & is_later), float(median(level[of_host & ~is_later]))
        middle_us = float(median(level[late]))
        are_late = level[late].min() >= HALFWAY * middle_us and len(late) >= FEWEST_PEERS
        if are_late and quick_us <= (1.0 - MOSTLY) * middle_us:
            yield replace(one, ranks=view.rank_ids(late))


def host_suspects(case: Case, local: LocalTime, whole: LocalTime, excluded: BoolArray) -> list[Suspect]:
    """Return hosts that are slow in a local time, the worst first, with what they lose in the `whole` of it.

    One that is improbable by itself is listed and taken out: of two slow hosts of four each hides the other.
    Its p-value tells whether it is improbable over all hosts. One that is slow by itself says nothing of the
    samples of its replica either, by which hosts of other stages are compared.
    """
    view = case.view_for(local)
    found: list[Suspect] = []
    n_hosts = len(np.unique(view.host[~excluded]))
    while len(found) < n_hosts - 1:
        series = case.series(local, excluded, view.host)
        one = _worst_host(case, local, whole, relative_to_other_hosts(series, view))
        if one is None:
            break
        found.append(replace(one, p_value=min(1.0, one.p_value * n_hosts)))
        excluded = excluded | np.isin(view.ranks, one.ranks)
    return found


def _worst_host(case: Case, local: LocalTime, whole: LocalTime, relative: FloatArray) -> Suspect | None:
    """The slowest host that is improbable by itself, of ranks that lie `relative` (R, S) to other hosts.

    Most hosts do not lie above their peers by the least effect, and need no closer look.
    """
    view, limits = case.view_for(local), case.limits
    of_rank = median(relative, 1)
    known = np.flatnonzero(np.isfinite(of_rank))
    hosts, code = np.unique(view.host[known], return_inverse=True)
    by_step = medians_by(relative[known], code)
    level = median(by_step, 1)
    # Time that more work explains is not the device's.
    own_loss = of_rank - _more_work(case, np.isfinite(of_rank)) if local.follows_work else of_rank
    # How ranks of one host scatter says how far their middle may lie by chance.
    scatter = float(np.nan_to_num(sigma(of_rank[known] - level[code])))
    least, n_peers = np.full(len(hosts), local.floor), dict[int, tuple[int, int]]()
    for host in np.flatnonzero(level >= local.effect).tolist():
        own, others = known[code == host], known[code != host]
        # A single slow rank is no slow host, and neither are experts, whose load is nobody's fault.
        needed = max(2, (MOSTLY if local.is_computing else HALFWAY) * len(own))
        is_told = view.knows_work or not local.follows_work
        if is_told and (own_loss[own] >= HALFWAY * level[host]).sum() >= needed:
            peers = others[np.isin(view.role[others], view.role[own])]
            n_peers[host] = len(peers), len(np.unique(view.host[peers]))
            by_chance = MEDIAN_SE * scatter / np.sqrt(len(own))
            if not local.is_computing:
                usual_us = max(_quiet_us(local, peers), _quiet_us(local, others), 1e-9)
                # It differs between healthy hosts by a factor, not by a sum.
                by_chance = max(by_chance, IDLE_SIGMA * level[host] / np.log1p(level[host] / usual_us))
            # A single peer host may lie far out by chance, like this one: that counts too.
            least[host] = max(local.floor, by_chance * (1.0 + 1.0 / n_peers[host][1]) ** 0.5)
    # A host may hold a replica of its own: work that follows samples may differ by chance in a few steps.
    everybody = np.zeros(len(hosts), np.int32)
    judged = deviation_of(
        by_step, everybody, least, healthy=local.healthy, is_relative=True, is_alone=local.follows_work
    )
    lost_us = level * (float(median(local.time_us, None)) if local.is_computing else 1.0)
    is_costly = lost_us >= limits.open_cost_share * view.mean_step_us
    listed = np.where(is_costly, limits.doubted_p_value, limits.listed_p_value)
    slow = [host for host in n_peers if judged.tail[host] <= listed[host]]
    if not slow:
        return None
    worst = max(slow, key=lambda host: (level[host], -host))
    own = known[code == worst]
    n_ranks, n_hosts = n_peers[worst]
    # The host's own level in all steps, so that the chance of single steps is not claimed as a saving.
    course = np.full(len(view.steps), float(median(of_rank[own])))
    course = course if local.is_computing else lost_always_us(view, own, view.likely_idle_us)
    events = _steps_that_lose(case, local, np.isfinite(of_rank), own)
    course = course if events is None else course / events.mean()
    one = late_suspect(
        view, whole, own, course, events, scale=judged.scale[worst], n_others=n_ranks, n_hosts=n_hosts
    )
    return replace(one, p_value=float(judged.tail[worst]))


def _more_work(case: Case, known: BoolArray) -> FloatArray:
    """How much longer `known` ranks (R,) compute than other hosts for more or longer calls, as logarithms.

    All of a host may have the same samples, where ranks share them: these lengthen all who do alike.
    """
    view, calls = case.view, np.where(known, case.work_by_calls, np.nan)
    more = np.fmax(relative_to_other_hosts(calls[:, None], view)[:, 0], 0.0)
    longer = 0.0 if case.kernels is None else group_medians(case.kernels.of_samples(known, view), view.sample)
    return more + np.where((np.bincount(view.sample)[view.sample] > 1) | (view.replica < 0), longer, 0.0)


def _steps_that_lose(case: Case, local: LocalTime, known: BoolArray, own: IntArray) -> BoolArray | None:
    """Return in which steps (S,) ranks `own` of a host lose what their kernels take longer; None for all.

    Totals tell it if its steps differ by more than those of other `known` ranks (R,) do by chance.
    """
    if local.follows_work or not local.is_computing:
        return None
    local = next(one for one in case.local_times if one.is_computing)
    series = relative_to_other_hosts(case.series(local, ~known, case.view.host), case.view)
    course, others = np.nan_to_num(median(series[own], 0)), np.setdiff1d(np.flatnonzero(known), own)
    loses = course >= max(local.effect, HALFWAY * float(course.max()))
    if len(loses) < case.limits.min_steps_intermittent or not loses.any() or loses.mean() > MOSTLY:
        return None
    by_host = medians_by(series[others], np.unique(case.view.host[others], return_inverse=True)[1])
    noise = float(np.fmax.reduce(sigma(by_host - median(by_host, 1)[:, None], 1)))
    return loses if course[loses].mean() - course[~loses].mean() > CLEAR_SIGMAS * noise else None


def _quiet_us(local: LocalTime, ranks: IntArray) -> float:
    """Idle time of ranks in a quiet step: all may pause in half of them (garbage collection, checkpoints)."""
    return float(np.quantile(np.nan_to_num(median(local.values[ranks], 0)), 1.0 - MOSTLY))


def holding_a_stage(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow.

    One that holds a whole stage is compared with all other hosts by measures that do not depend on the stage.
    The finding reports where and how much, not whether the host or the stage is to blame.
    """
    view = case.view
    role, _ = np.unique(np.stack([view.role, view.host]), axis=1)
    of_role, n_hosts = np.unique(role, return_counts=True)
    shared = view.hosts_of_ranks(view.ranks[np.isin(view.role, of_role[n_hosts > 1])])
    if set(view.hosts) <= set(shared):
        return
    for local in case.local_times:
        for whole in case.ways_to_compare(local, of_all=True):
            hosts = [pair for pair in _in_places(case, whole) if pair[1].hosts[0] not in shared]
            far = [one for place, one in hosts if _is_far(case, place, one)]
            yield from map(_of_work, most_significant(far, 1 + len(whole.places)))


def _is_far(case: Case, place: LocalTime, one: Suspect) -> bool:
    """Whether it idles a multiple of all others there, and that is costly: stages may differ by less.

    A stage that only has more work is not slow in all types of kernels.
    """
    is_own, limits = np.isin(case.view.ranks, one.ranks), case.limits
    own_us, others_us = (float(median(place.time_us[ranks], None)) for ranks in (is_own, ~is_own))
    is_costly = own_us - others_us >= limits.sure_cost_share * case.view.mean_step_us
    return one.cause == "compute" or (is_costly and own_us >= limits.single_step_idle_factor * others_us)


def _of_work(one: Suspect) -> Suspect:
    """Return the suspect as a workload finding, which blames no host for computing longer: stages differ."""
    row, host, is_alarm = one.evidence[0], one.hosts[0], one.cause != "compute"
    kind: WorkloadKind = "stage_imbalance"
    if is_alarm:  # others may idle for no time at all
        is_head = one.cause == "input"
        kind = "input_bound" if is_head else "host_bound"
        fact_kind = "host_alone_late" if is_head else "host_alone_idle"
        said = fact(fact_kind, host=host, own_us=row.value, others_us=row.peers_median)
    else:
        said = fact("host_alone_slow", host=host, slower_share=row.value / row.peers_median - 1.0)
    one = replace(one, key=f"{kind}-host-{host}", kind=kind, facts=(said,))
    return replace(one, confidence="low", separable=False, is_alarm=is_alarm)
