"""The step that reports show: its lanes, its critical path, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cluster_analysis.replay.lanes import KINDS, lanes_of, span_of
from cluster_analysis.replay.replay import Graph
from cluster_analysis.replay.waits import waits_table
from cluster_analysis.tables.described import CRITICAL_PATH, LANES, WAITS
from cluster_analysis.tables.schema import empty
from cluster_run.findings import Finding
from cluster_run.ids import Step


def lanes_tables(
    graph: Graph | None, steps: Sequence[Step], findings: Sequence[Finding]
) -> dict[str, pa.Table]:
    """Return LANES, CRITICAL_PATH and WAITS of a step that shows the costliest alarm, else of a usual one.

    All are empty where nothing can be replayed.
    """
    if graph is None or not len(graph.operator) or graph.n_steps != len(steps):
        return {"lanes": empty(LANES), "critical_path": empty(CRITICAL_PATH), "waits": empty(WAITS)}
    at = _shown_step(graph, steps, findings)
    span = span_of(graph, at)
    found = lanes_of(span, at)
    n_ranks = len(found.ranks)
    lanes = {
        "rank": found.ranks.astype(np.int32),
        "step": np.full(n_ranks, steps[at], np.int32),
        "cell_us": np.full(n_ranks, found.cell_us),
        "cells": pa.array([row.tobytes() for row in found.cells], pa.binary()),
    }
    path = {
        "rank": found.path_rank.astype(np.int32),
        "begin_us": found.path_begin_us,
        "end_us": found.path_end_us,
        "kind": [KINDS[one] for one in found.path_kind.tolist()],
    }
    return {
        "lanes": pa.table(lanes, LANES),
        "critical_path": pa.table(path, CRITICAL_PATH),
        "waits": waits_table(found, span),
    }


def _shown_step(graph: Graph, steps: Sequence[Step], findings: Sequence[Finding]) -> int:
    worst = next((one for one in findings if one.is_alarm and one.steps), None)
    if worst is not None and len(worst.steps) < len(steps) and worst.steps[0] in steps:
        return steps.index(worst.steps[0])
    longest = np.nan_to_num(graph.measured_us).max(axis=1)
    return int(np.argsort(longest, kind="stable")[len(longest) // 2])
