"""A job prepared for writing: what every form of file needs, worked out once for all ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.files.entries import LinkEntries, link_entries
from cluster_simulate.files.naming import LocalIds, op_names
from cluster_simulate.files.observed import OpView, observe
from cluster_simulate.files.totals import StepTotals, step_totals
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Bools, Ints
from cluster_simulate.job.job import SimulatedJob
from cluster_simulate.job.spec import Framework


@dataclass(frozen=True)
class CapturedJob:
    """`*_rows` hold the first row of each rank, and one more: rank r has rows [rows[r], rows[r + 1])."""

    job: SimulatedJob
    framework: Framework
    view: OpView
    names: list[str]
    entries: LinkEntries
    entry_src: Ints
    entry_dst: Ints
    totals: StepTotals
    op_rows: Ints
    link_rows: Ints
    entry_rows: Ints
    group_numbers: list[list[int]]


def capture(job: SimulatedJob, framework: Framework) -> CapturedJob:
    """Prepare a job for writing in a framework's dialect."""
    view = observe(job)
    entries = link_entries(view, framework)
    local = LocalIds(job)
    every = np.arange(job.spec.n_ranks + 1)
    mine: list[list[int]] = [[] for _ in range(job.spec.n_ranks)]
    for number, members in enumerate(job.groups.members):
        for rank in members:
            mine[rank].append(number)
    return CapturedJob(
        job=job,
        framework=framework,
        view=view,
        names=op_names(job, view.ops),
        entries=entries,
        entry_src=local.of(entries.group, entries.rank),
        entry_dst=local.of(entries.group, entries.dst),
        totals=step_totals(job, framework),
        op_rows=np.searchsorted(view.ops.rank, every),
        link_rows=np.searchsorted(view.ops.rank[view.links.op], every),
        entry_rows=np.searchsorted(entries.rank, every),
        group_numbers=mine,
    )


def filed_as_p2p(kind: Ints, framework: Framework) -> Bools:
    """Return which operators a framework files under `p2p`.

    PyTorch goes by lower-case prefixes; MindSpore by the words `Send` and `Receive` as they are spelled,
    which `hcom_send` and `hcom_receive` do not hold.
    """
    if framework == "ms":
        return np.equal(kind, kinds.BATCH_SEND_RECV)
    is_p2p: Bools = np.isin(kind, list(kinds.P2P_KINDS))
    return is_p2p
