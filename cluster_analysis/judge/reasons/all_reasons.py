"""What is known of suspects beyond what made them suspect: kernels, clocks, retries."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_analysis.judge.reasons.clock import with_clocks
from cluster_analysis.judge.reasons.kernels import with_kernels
from cluster_analysis.judge.reasons.retries import with_retries
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.replay.job_evidence import JobEvidence


def with_reasons(evidence: JobEvidence, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, each with the evidence and facts that explain or confirm it."""
    explained = with_kernels(evidence.operators, view, suspects)
    explained = with_clocks(evidence.counters, view, explained)
    return with_retries(evidence.counters, explained)
