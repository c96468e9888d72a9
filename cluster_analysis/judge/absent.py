"""What ranks without files may have cost: the time that all others of a group waited for them.

Who waits for whom is not in the files of those who wait. An operator that takes far longer than complete ones
of its kind, on every member that was read, waited for the member that was not, or for the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import codes, is_point_to_point, numbers
from cluster_run.ids import Rank, Step


@dataclass(frozen=True)
class AbsentWait:
    """The longest that a group waited for members without files, summed by step.

    Attributes:
        us_per_step: mean over all steps of the longest wait in each.
        step: the step with the longest one.
        step_us: how long it was in that step.
        ranks: those members of the group that have no files.
    """

    us_per_step: float
    step: Step
    step_us: float
    ranks: tuple[Rank, ...]


def wait_for_absent(
    matched: pa.Table, topology: Topology, read: frozenset[Rank], n_steps: int
) -> AbsentWait | None:
    """Return how long groups waited for ranks without files; None where they did not, or nobody is missing.

    Args:
        matched: MATCHED of all steps.
        topology: the members of the groups.
        read: ranks that have files.
        n_steps: steps of the job.
    """
    kinds, kind = codes(matched["op_type"])
    is_message = np.isin(kind, [code for code, name in enumerate(kinds) if is_point_to_point(name)])
    lacks = pc.less(matched["n_ranks"], matched["n_expected"])
    table = matched.filter(pc.and_(lacks, pa.array(~is_message)))
    if not table.num_rows:
        return None
    n_ranks = numbers(table["n_ranks"])
    # What all of them waited, at least: the rest is who came earlier than others.
    common = numbers(table["total_wait_us"]) - (n_ranks - 1) * numbers(table["max_wait_us"])
    names, group = codes(table["group"])
    steps, step = np.unique(table["step"].to_numpy(), return_inverse=True)
    waited = np.zeros((len(steps), len(names)))
    np.add.at(waited, (step, group), np.maximum(common, 0.0))
    # Records can be lost, too: that is no rank without files.
    absent = [
        tuple(rank for rank in topology.groups[name].ranks if rank not in read)
        if name in topology.groups
        else ()
        for name in names
    ]
    waited[:, [not ranks for ranks in absent]] = 0.0
    if not waited.any():
        return None
    worst, at = np.unravel_index(int(waited.argmax()), waited.shape)
    return AbsentWait(
        float(waited.max(axis=1).sum()) / max(n_steps, 1),
        Step(int(steps[worst])),
        float(waited[worst, at]),
        absent[at],
    )
