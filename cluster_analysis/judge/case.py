"""Input of the detectors: the job, its limits, and the comparisons that several of them need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.judge.measures.deviation import Deviation, deviation_of, relative_to_peers
from cluster_analysis.judge.measures.idle import beyond_scatter, shared_by_seat
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.measures.local_times import LocalTime, local_times
from cluster_analysis.judge.measures.operators import observe_operators, observe_sent, slow_senders
from cluster_analysis.judge.measures.slow_units import Observations
from cluster_analysis.judge.measures.steady import Kernels, kernels_of
from cluster_analysis.judge.measures.transfers import Transfers, transfers_of
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView, build_view
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import group_medians, others_medians
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.kernels import KernelCalls, kernel_calls
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import HostId
from cluster_run.kinds import Unit


class Case(Struct, frozen=True, dict=True):
    """One job before the detectors. `links` are observations of single links, None without a matrix."""

    evidence: JobEvidence
    view: JobView
    links: Observations | None
    limits: Thresholds
    _deviations: dict[tuple[bytes, bytes, bool], Deviation] = field(default_factory=dict)

    @cached_property
    def operators(self) -> Observations | None:
        """Observations of the network by operator, in the order of the graph; None where none was matched."""
        graph = self.view.graph if self.view.shows_waiting else None
        return None if graph is None else observe_operators(graph, self.view.topology.hosts, self.limits)

    @cached_property
    def network(self) -> Observations | None:
        """Observations of the network: links; where none were read what ranks sent, or at least operators.

        Files may show those inside of hosts alone, or those between hosts.
        """
        sent, links, seen = self.evidence.sent, self.links, self.operators
        if seen is None:
            return links
        seen = observe_sent(sent, seen, self.view, self.limits) if sent.num_rows else seen
        return seen if links is None else seen.beside(links, ~self.is_read(seen))

    def hosts_of_units(self, seen: Observations) -> tuple[list[frozenset[HostId]], BoolArray]:
        """The hosts of each unit of the network, and whether these are several."""
        hosts = [frozenset(self.view.hosts_of_ranks(ranks)) for ranks in seen.members]
        return hosts, np.array([len(one) > 1 for one in hosts], bool)

    def is_read(self, seen: Observations) -> BoolArray:
        """Whether links were read that reach as far as each unit (U,): inside a host, or to another one."""
        seen_as, read = (
            self.hosts_of_units(one)[1] if one else np.zeros(0, bool) for one in (seen, self.links)
        )
        return np.isin(seen_as, read)

    @cached_property
    def transfers(self) -> Transfers | None:
        """Observations of the network, with the operators that it carried."""
        graph, teams, seen = self.view.graph, self.operators, self.network
        return None if graph is None or teams is None or seen is None else transfers_of(graph, teams, seen)

    @cached_property
    def slow_senders(self) -> Mapping[str, tuple[int, ...]]:
        """Ranks that sent more slowly than others of their group, by group, if they record sending."""
        return slow_senders(self.evidence.sent, self.limits) if self.evidence.sent.num_rows else {}

    @cached_property
    def local_times(self) -> tuple[LocalTime, ...]:
        """The local times that were measured."""
        return tuple(one for one in local_times(self.view, self.limits) if np.isfinite(one.values).any())

    @cached_property
    def calls(self) -> KernelCalls:
        """Calls of kernels by rank and type."""
        return kernel_calls(self.evidence.operators, self.view.ranks)

    @cached_property
    def kernels(self) -> Kernels | None:
        """How long kernels take on each rank compared with its peers; None where not known."""
        return kernels_of(self.calls, self.view.role)

    def ways_to_compare(self, local: LocalTime, *, of_all: bool = False) -> list[LocalTime]:
        """Ways to compare a local time: computing also by kernels, which uneven work does not change.

        `of_all`: with all ranks of the job, whatever their role, computing by kernels alone.
        """
        if not local.is_computing:
            places = tuple(replace(one, of_all=of_all) for one in local.places)
            return [replace(local, of_all=of_all, places=places)]
        longer = self.whatever_stage if of_all else self.by_device
        if longer is None:
            return [] if of_all else [local]
        # Samples do not change these kernels, whose times are sums over all steps.
        values = np.where(np.isfinite(local.time_us), longer[:, None], np.nan)
        by_kernels = replace(
            local, cause="compute", values=values, follows_work=False, has_idle=False, of_all=of_all
        )
        return [by_kernels] if of_all else [local, by_kernels]

    @cached_property
    def by_device(self) -> FloatArray | None:
        """How much longer each rank's kernels take by its device (R,), as logarithms; None if unknown.

        What they take on others that hold the same experts is their load.
        """
        longer = None if self.kernels is None else self.kernels.of_device(self.view)
        if longer is None:
            return None
        load = np.fmax(others_medians(longer[:, None], self.view.expert)[:, 0], 0.0)
        return longer - np.clip(longer, 0.0, np.nan_to_num(load))

    @cached_property
    def work_by_calls(self) -> FloatArray:
        """How much longer each rank computes as it calls kernels more often (R,), as logarithms."""
        return self.calls.longer_by_calls(self.view.role)

    @cached_property
    def whatever_stage(self) -> FloatArray | None:
        """How much longer each rank's kernels take than everybody's (R,), as logarithms; None if unknown."""
        kernels = self.kernels_of_all
        return None if kernels is None else kernels.whatever_stage(self.view.role, self._without_roles)

    @cached_property
    def kernels_of_all(self) -> Kernels | None:
        """How long kernels take on each rank compared with all ranks of the job; None where not known."""
        return kernels_of(self.calls, np.zeros_like(self.view.role))

    def is_known_work(self, unit: Unit | None) -> bool:
        """Whether only more work can make a unit of it longer, as something else shows its devices.

        Kernels that all stages call as often; kernels at all, or computing outside of experts.
        """
        if unit == "stage":
            kernels = self.kernels_of_all
            return kernels is not None and kernels.differ_by(self.view.stage) < self.limits.device_effect
        return unit == "expert" and (self.view.knows_work or self.by_device is not None)

    @cached_property
    def _without_roles(self) -> JobView:
        """The job as if all of its ranks did the same work, for measures that do not depend on the stage."""
        view = self.view
        return replace(view, role=np.zeros_like(view.role), stage=np.full_like(view.stage, -1))

    def view_for(self, local: LocalTime) -> JobView:
        """The job, with the roles within which a local time is compared."""
        return self._without_roles if local.of_all else self.view

    def series(self, local: LocalTime, excluded: BoolArray, apart: IntArray) -> FloatArray:
        """How far ranks lie above the median of their peers (R, S); `excluded` ranks (R,) are no peers.

        `apart` (R,) are units that do not tell what their own data are.
        """
        values = np.where(excluded[:, None], np.nan, local.values)
        series = relative_to_peers(values, self.view_for(local), apart if local.follows_work else None)
        return (
            series if local.is_computing else series - shared_by_seat(series, self.view.seat, self.view.role)
        )

    def deviation(self, local: LocalTime, excluded: BoolArray | None = None) -> Deviation:
        """How far ranks lie from their peers; formed once.

        `excluded` ranks (R,), of slow hosts, are no peers of others, and are compared with their own host.
        """
        left_out = np.zeros(len(self.view.ranks), bool) if excluded is None else excluded
        key = (local.values.tobytes(), left_out.tobytes(), local.of_all)
        if key not in self._deviations:
            series, role = self.series(local, left_out, np.arange(len(left_out))), self.view_for(local).role
            if left_out.any():
                usual = group_medians(np.where(left_out[:, None], np.nan, local.values), role)
                beyond = (local.values - usual)[left_out]
                series[left_out] = beyond - others_medians(beyond, self.view.host[left_out])
            # Where the scatter of healthy ranks is known, a single peer is enough.
            min_peers = 1 if local.healthy else self.limits.min_peers
            self._deviations[key] = deviation_of(
                series, role, np.full(len(series), local.floor), healthy=local.healthy, min_peers=min_peers,
                by_mean=not local.has_idle,
            )  # fmt: skip
        return self._deviations[key]

    def events(self, local: LocalTime, excluded: BoolArray) -> list[tuple[BoolArray, FloatArray]]:
        """When ranks are far from their peers by the scatter of a place, and their loss (both R, S).

        In all places together, then in each: where one scatters, others often lose as much in it by chance.
        """
        if not local.places:
            whole = self.deviation(local, excluded)
            return [(whole.events(local.event_effect), whole.series)]
        found = [self.deviation(one, excluded) for one in local.places]
        far = [one.events(local.event_effect) for one in found]
        lost = [beyond_scatter(one.series, one.step_scale) for one in found]
        return [(np.any(far, axis=0), np.sum(lost, axis=0)), *zip(far, lost, strict=True)]

    def ranks_of(self, found: Sequence[Suspect]) -> BoolArray:
        """Which ranks (R,) are among those of `found`."""
        return np.isin(self.view.ranks, [rank for one in found for rank in one.ranks])

    def in_slow_hosts(self, local: LocalTime, found: Sequence[Suspect]) -> BoolArray:
        """Which ranks (R,) belong to hosts found slow as a whole in a local time: they are no peers."""
        slow = self.ranks_of([one for one in found if one.is_slow_host and one.metric == local.name])
        return np.asarray(slow & ~np.isin(self.view.host, self.view.host[~slow]))


def build_case(evidence: JobEvidence, topology: Topology, limits: Thresholds) -> Case:
    """Prepare a job of at least one step for its detectors."""
    view = build_view(evidence, topology)
    return Case(evidence, view, observe(evidence, topology, limits, view.graph), limits)
