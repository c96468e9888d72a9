"""From the evidence of a job to findings: what is slow, why, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cluster_analysis.evidence import JobEvidence
from cluster_analysis.findings import Finding, Verdict
from cluster_analysis.model import Topology
from cluster_analysis.thresholds import Thresholds


@dataclass(frozen=True)
class Detection:
    """The outcome: findings sorted by cost, what could not be judged, and the tables for reports.

    `replay` says how far the replay may be trusted: `error_share` (replayed against measured step),
    `explained_share` (of the avoidable time), `placebo_ms` (what repairing healthy ranks would "save").
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    notes: tuple[str, ...]
    replay: Mapping[str, float]
    step_ms: float | None
    matched: pa.Table
    rank_times: pa.Table
    links: pa.Table
    extra: Mapping[str, float] = field(default_factory=dict)


def detect(evidence: JobEvidence, topology: Topology, thresholds: Thresholds | None = None) -> Detection:
    """Judge a job.

    Args:
        evidence: all steps that could be read.
        topology: hosts, groups and stages; roles may be unknown.
        thresholds: None for the documented defaults.
    """
    raise NotImplementedError
