"""Names that files use: of operators, and of ranks inside their groups."""

from __future__ import annotations

import numpy as np

from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Ints
from cluster_simulate.job.job import Ops, SimulatedJob


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
