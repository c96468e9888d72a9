"""One step of all ranks: operators matched, local time between them, links with global ranks."""

from __future__ import annotations

import pyarrow as pa

from cluster_analysis.evidence import StepEvidence
from cluster_analysis.model import Topology
from cluster_run.ids import Step


def reduce_step(
    step: Step, steps: pa.Table, collectives: pa.Table, links: pa.Table, topology: Topology
) -> StepEvidence:
    """Reduce one step.

    Args:
        step: its number.
        steps: STEPS rows; rows of other steps are passed over.
        collectives: COLLECTIVES rows, likewise.
        links: LINKS rows, likewise; `src_rank` and `dst_rank` global, null where unknown.
        topology: groups with their global members.
    """
    raise NotImplementedError
