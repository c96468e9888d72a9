"""All detectors in their order: each gets the suspects that those before it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors import (
    pauses,
    slow_host,
    slow_network,
    slow_rank,
    uneven_host,
    whole_job,
    workload,
)
from cluster_analysis.judge.suspects import Suspect

#: One question: which parts of a job may have lost time. Pure: the same case and suspects, the same answer.
Detector = Callable[[Case, Sequence[Suspect]], Iterator[Suspect]]
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
