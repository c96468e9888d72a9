"""What detectors are given: the job, its limits, and the comparisons that several of them need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.judge.measures.deviation import Deviation, deviations
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.measures.metrics import Metric, by_kernels, metrics, outside_experts
from cluster_analysis.judge.measures.operators import observe_operators
from cluster_analysis.judge.measures.slow_units import Observations
from cluster_analysis.judge.measures.steady import Kernels, kernels_of
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView, build_view
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.limits import Thresholds


class Case(Struct, frozen=True, dict=True):
    """One job before the detectors. `links` are observations of single links, None without a matrix."""

    evidence: JobEvidence
    view: JobView
    links: Observations | None
    limits: Thresholds
    _compared: dict[tuple[str, bytes], Deviation] = field(default_factory=dict)

    @cached_property
    def operators(self) -> Observations | None:
        """What operators show of the network, in the order of the graph; None where none was read."""
        graph = self.view.graph
        return None if graph is None else observe_operators(graph, self.view.topology.hosts, self.limits)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The local times that were measured; computing without that of experts where it is known."""
        return tuple(outside_experts(one, self.view) for one in self._measured)

    @cached_property
    def computing(self) -> Metric | None:
        """All computing, that of experts too; None where it was not measured."""
        return next((one for one in self._measured if one.is_log), None)

    @cached_property
    def steady(self) -> Metric | None:
        """Computing by the kernels that do the same work whatever the samples are; None where not known."""
        return self._told_by(self._by_device)

    @cached_property
    def lost_by_kernels_us(self) -> tuple[FloatArray, FloatArray] | None:
        """What each rank loses a step by its device, and beyond that (R,); None where no kernels tell."""
        if self._kernels is None or self._by_device is None:
            return None
        return self._kernels.lost_us(self.view, self._by_device)

    @cached_property
    def _kernels(self) -> Kernels | None:
        return kernels_of(self.evidence.operators, self.view, self.view.role)

    @cached_property
    def _by_device(self) -> FloatArray | None:
        return None if self._kernels is None else self._kernels.of_device(self.view)

    @cached_property
    def common(self) -> Metric | None:
        """Computing by what kernels show whatever the stage; None where not known."""
        of_all = kernels_of(self.evidence.operators, self.view, np.zeros_like(self.view.role))
        return None if of_all is None else self._told_by(of_all.whatever_stage(self.view.role))

    @cached_property
    def _measured(self) -> tuple[Metric, ...]:
        return tuple(one for one in metrics(self.view, self.limits) if np.isfinite(one.values).any())

    def _told_by(self, longer: FloatArray | None) -> Metric | None:
        return None if self.computing is None or longer is None else by_kernels(self.computing, longer)

    @cached_property
    def without_roles(self) -> JobView:
        """The job as if all of its ranks did the same work, for what knows no stage."""
        view = self.view
        return replace(view, role=np.zeros_like(view.role), stage=np.full_like(view.stage, -1))

    def deviation(
        self, metric: Metric, excluded: BoolArray | None = None, *, of_all: bool = False
    ) -> Deviation:
        """How far ranks lie from their peers, `excluded` ranks (R,) being nobody's; formed once.

        `of_all`: all ranks of the job are peers, whatever their role.
        """
        left_out = np.zeros(len(self.view.ranks), bool) if excluded is None else excluded
        key = (f"{metric.name} {id(metric.values)} {of_all}", left_out.tobytes())
        if key not in self._compared:
            values = np.where(left_out[:, None], np.nan, metric.values)
            view, use_replicas = (self.without_roles, False) if of_all else (self.view, metric.follows_work)
            self._compared[key] = deviations(
                values, view, metric.floor, self.limits, use_replicas=use_replicas
            )
        return self._compared[key]

    def ranks_of(self, found: Sequence[Suspect]) -> BoolArray:
        """Which ranks (R,) are among those of `found`."""
        return np.isin(self.view.ranks, [rank for one in found for rank in one.ranks])

    def in_slow_hosts(self, metric: Metric, found: Sequence[Suspect]) -> BoolArray:
        """Which ranks (R,) belong to a host that was found slow in a metric: they are no peers of others."""
        return self.ranks_of([one for one in found if one.kind == "slow_host" and one.metric == metric.name])


class Detector(Protocol):
    """One question: which parts of a job may have lost time. Pure: the same case, the same suspects."""

    def __call__(self, case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
        """Give suspects.

        Args:
            case: the job.
            found: what the detectors before this one have found: a rank of a slow host is not slow itself.
        """
        ...


def build_case(evidence: JobEvidence, topology: Topology, limits: Thresholds) -> Case:
    """Prepare a job of at least one step for its detectors."""
    return Case(evidence, build_view(evidence, topology), observe(evidence, topology, limits), limits)
