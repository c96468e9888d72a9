"""A job prepared for writing: what every form of file needs, worked out once for all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cluster_simulate.files.entries import (
    MATRIX_TYPES,
    TOTAL,
    VARIANTS,
    LinkEntries,
    link_entries,
    link_figures,
)
from cluster_simulate.files.observed import OpView, observe
from cluster_simulate.files.totals import StepTotals, step_totals
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Bools, Ints
from cluster_simulate.job.job import TRANSPORTS, Ops, SimulatedJob
from cluster_simulate.job.spec import Framework


@dataclass(frozen=True)
class CapturedJob:
    """`*_rows` hold the rows of each rank."""

    job: SimulatedJob
    framework: Framework
    view: OpView
    names: list[str]
    entries: LinkEntries
    entry_src: Ints
    entry_dst: Ints
    totals: StepTotals
    op_rows: list[slice]
    link_rows: list[slice]
    entry_rows: list[slice]
    group_numbers: list[list[int]]


def capture(job: SimulatedJob, framework: Framework) -> CapturedJob:
    """Prepare a job for writing in a framework's spelling."""
    view = observe(job)
    entries = link_entries(view, framework)
    local = LocalIds(job)
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
        op_rows=_rows_of(view.ops.rank, job.spec.n_ranks),
        link_rows=_rows_of(view.ops.rank[view.links.op], job.spec.n_ranks),
        entry_rows=_rows_of(entries.rank, job.spec.n_ranks),
        group_numbers=mine,
    )


def _rows_of(ranks: Ints, n_ranks: int) -> list[slice]:
    """Return the rows of each rank; `ranks` are sorted."""
    return [slice(*ends) for ends in pairwise(np.searchsorted(ranks, np.arange(n_ranks + 1)).tolist())]


def matrix_rows(
    captured: CapturedJob, rank: int
) -> Iterator[tuple[int, bool, str, str, int, int, str, tuple[float, float, float], str]]:
    """Give what communication_matrix.json says of each link of a rank, in its order.

    That is step, whether it is filed under `p2p`, the entry's name, the group's hash, both ends in the group,
    transport, `link_figures`, and the operator; that is empty for a total.
    """
    entries, rows = captured.entries.at(captured.entry_rows[rank]), captured.entry_rows[rank]
    columns = (values.tolist() for values in vars(entries).values())
    is_p2p = filed_as_p2p(entries.kind, captured.framework).tolist()
    ends = captured.entry_src[rows].tolist(), captured.entry_dst[rows].tolist()
    for (_, step, group, kind, variant, _, transport, size, time, op), alone, src, dst in zip(
        zip(*columns, strict=True), is_p2p, *ends, strict=True
    ):
        name, of_group = f"{MATRIX_TYPES[kind]}-{VARIANTS[variant]}", captured.job.groups.hashes[group]
        op_name = "" if variant == TOTAL else captured.names[op]
        yield step, alone, name, of_group, src, dst, TRANSPORTS[transport], link_figures(size, time), op_name


def filed_as_p2p(kind: Ints, framework: Framework) -> Bools:
    """Return which operators a framework files under `p2p`.

    PyTorch goes by lower-case prefixes; MindSpore by the words `Send` and `Receive` as they are spelled,
    which `hcom_send` and `hcom_receive` do not hold.
    """
    if framework == "ms":
        return np.equal(kind, kinds.BATCH_SEND_RECV)
    is_p2p: Bools = np.isin(kind, list(kinds.P2P_KINDS))
    return is_p2p


def op_names(job: SimulatedJob, ops: Ops, rows: Ints | slice = slice(None)) -> list[str]:
    """Return the names of these operators, without the `@` and what follows."""
    suffixes = [hash_[-3:] for hash_ in job.groups.hashes]
    return [
        f"hcom_{kinds.OP_KINDS[kind]}__{suffixes[group]}_{number}_1"
        for kind, group, number in zip(
            ops.kind[rows].tolist(), ops.group[rows].tolist(), ops.number[rows].tolist(), strict=True
        )
    ]


class LocalIds:
    """Translates a global rank to its number in a group."""

    def __init__(self, job: SimulatedJob) -> None:
        self._n = job.spec.n_ranks
        keys = [
            (g * self._n + rank, i) for g, row in enumerate(job.groups.members) for i, rank in enumerate(row)
        ]
        table = np.array(sorted(keys), dtype=np.int64).reshape(-1, 2)
        self._keys, self._local = table[:, 0], table[:, 1]

    def of(self, group: Ints, rank: Ints) -> Ints:
        """Return the local ids of pairs of group and rank."""
        local: Ints = self._local[np.searchsorted(self._keys, group * self._n + rank)]
        return local
