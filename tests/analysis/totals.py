"""Jobs of step totals alone, made by hand: what is compared is then exactly what is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_run.ids import HostId, Rank
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import evidence_of, small_topology, steps_table

STEP_US = 1e6


def on_hosts(n_ranks: int, ranks_per_host: int) -> Topology:
    """Ranks of one role, so many on each host."""
    where = small_topology({"g": tuple(range(n_ranks))}, stages=dict.fromkeys(range(n_ranks), 0))
    hosts = {Rank(rank): HostId(str(1 + rank // ranks_per_host)) for rank in range(n_ranks)}
    return replace(where, hosts=hosts)


def evidence_of_computing(
    computing_us: FloatArray, where: Topology, idle_us: FloatArray | None = None
) -> JobEvidence:
    """Evidence of (ranks, steps) computing and idle times in steps of a second; the rest is communication."""
    idle_us = np.ones(computing_us.shape) if idle_us is None else idle_us  # files of r1.x know of none
    totals = [
        steps_table({rank: own_us + idle}, step=step, computing_us=own_us)
        for (rank, step), own_us, idle in zip(
            np.ndindex(*computing_us.shape),
            computing_us.ravel().tolist(),
            idle_us.ravel().tolist(),
            strict=True,
        )
    ]
    table = pa.concat_tables(totals)
    exposed = STEP_US - np.asarray(table["computing_us"]) - np.asarray(table["free_us"])
    return evidence_of(where, with_column(table, "communication_not_overlapped_us", exposed))


def evidence_of_idle(
    computing_us: FloatArray, free_us: FloatArray, preparing_us: FloatArray, where: Topology
) -> JobEvidence:
    """The same with idle time between operators and before the first one, all (ranks, steps)."""
    evidence = evidence_of_computing(computing_us, where, free_us)
    table = evidence.step_table
    preparing = preparing_us[np.asarray(table["rank"]), np.asarray(table["step"])]
    return replace(evidence, step_table=with_column(table, "preparing_us", preparing))


def judged_by_computing(computing_us: FloatArray, where: Topology) -> Detection:
    """Judge a job by its computing times alone."""
    return detect(evidence_of_computing(computing_us, where), where)


def peers_agree(n_ranks: int, n_steps: int, *, share: float = 0.9, scatter: float = 0.001) -> FloatArray:
    """Computing times (ranks, steps) of healthy ranks in µs, `share` of a step, that differ by `scatter`."""
    chance = np.random.default_rng(7).normal(0.0, scatter, (n_ranks, n_steps))
    return np.asarray(share * STEP_US * np.exp(chance))
