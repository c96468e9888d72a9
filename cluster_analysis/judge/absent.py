"""What ranks without files may have cost: the time that all others of a group waited for them.

Who waits for whom is not in the files of those who wait. An operator that takes far longer than complete ones
of its kind, on every member that was read, waited for the member that was not, or for the network.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.view import JobView
from cluster_analysis.trace.calls import codes, is_point_to_point, numbers
from cluster_run.facts import Fact, fact


def waits_for_absent(matched: pa.Table, view: JobView, least_share: float) -> list[Fact]:
    """Tell how long groups waited for ranks without files: the longest wait in each step, and the worst.

    Empty where it is less than a share of the step, or nobody is missing.

    Args:
        matched: MATCHED of all steps.
        view: the job.
        least_share: of the mean step.
    """
    (names, group), (kinds, kind) = codes(matched["group"]), codes(matched["op_type"])
    groups, read = view.topology.groups, set(view.ranks.tolist())
    members = (groups[name].ranks if name in groups else () for name in names)
    absent = [tuple(rank for rank in one if rank not in read) for one in members]
    # What all of them waited, at least: the rest is who came earlier than others. Records can be lost, too:
    # that is no rank without files.
    of_others_us = (numbers(matched["n_ranks"]) - 1) * numbers(matched["max_wait_us"])
    common_us = np.maximum(numbers(matched["total_wait_us"]) - of_others_us, 0.0)
    lacks = np.array([bool(ranks) for ranks in absent], bool)[group]
    is_message = np.array([is_point_to_point(name) for name in kinds], bool)[kind]
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
