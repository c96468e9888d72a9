"""All detectors in their order: each gets the suspects that those before it found."""

from __future__ import annotations

from cluster_analysis.judge.case import Detector
from cluster_analysis.judge.detectors import (
    pauses,
    slow_host,
    slow_network,
    slow_rank,
    uneven_host,
    whole_job,
    workload,
)

DETECTORS: tuple[Detector, ...] = (
    slow_host.detect,
    slow_host.holding_a_stage,
    uneven_host.detect,
    pauses.detect,
    slow_rank.detect,
    pauses.by_turns,
    workload.detect,
    slow_network.detect,
    whole_job.detect,
)
