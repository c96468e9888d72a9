"""Bubbles of a pipeline: how long a stage waits for each message of a step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import numbers
from cluster_analysis.numeric.sorting import begins, places_in_runs
from cluster_analysis.reports.page.packing import Array, Picture
from cluster_analysis.result import AnalysisResult

#: Messages of one stage and step that are drawn.
MAX_MESSAGES = 1024


def build_bubbles(result: AnalysisResult) -> Picture:
    """Return the mean wait for the n-th message of a step, over the ranks of a stage and all steps.

    A stage inside the pipeline receives two messages a micro-batch, the first and the last stage one.
    Columns: stage, number of the message in the step, its mean wait in µs, its sender's stage or -1.
    """
    calls = _received(result)
    if calls is None:
        return Picture({"bubbles": None}, {})
    stage, number, wait_us, sender = calls
    columns = {"bubbles.stage": stage, "bubbles.number": number, "bubbles.sender": sender}
    found = {name: values.astype(np.int32) for name, values in columns.items()}
    header = {"stages": sorted(set(stage.tolist())), "n": int(number.max()) + 1}
    return Picture({"bubbles": header}, {**found, "bubbles.us": wait_us.astype(np.float32)})


def _received(result: AnalysisResult) -> tuple[Array, Array, Array, Array] | None:
    """Return stage, number, mean wait and sender's stage of each message; None where there is no pipeline."""
    matched, stages = result.table("matched"), result.topology.stages
    if len(set(stages.values())) < 2:
        return None
    kinds = pc.match_substring_regex(matched["op_type"].cast(pa.string()), "(?i)rec(ei)?v")
    is_own = pc.and_(kinds, pc.and_(pc.is_valid(matched["rank"]), pc.is_valid(matched["last_rank"])))
    table = matched.filter(is_own)
    if not table.num_rows:
        return None
    ends = [max(stages), *(pc.max(table[name]).as_py() for name in ("rank", "last_rank"))]
    stage_of = np.full(max(ends) + 1, -1)
    stage_of[list(stages)] = list(stages.values())
    names = ("rank", "last_rank", "step", "ordinal")
    rank, last, step, place = (numbers(table[name]).astype(np.int64) for name in names)
    wait_us = np.nan_to_num(numbers(table["total_wait_us"]))
    order = np.lexsort((place, step, rank))
    rank, last, step, wait_us = rank[order], last[order], step[order], wait_us[order]
    number = places_in_runs(begins(rank * (int(step.max()) + 1) + step))
    return _means(stage_of[rank], np.where(last == rank, -1, stage_of[last]), number, wait_us)


def _means(
    stage: Array, other: Array, number: Array, wait_us: Array
) -> tuple[Array, Array, Array, Array] | None:
    """Merge the records of a message by the ranks of a stage in all steps.

    Who came last is the sender, if anybody waited: most ranks and steps decide.
    """
    is_placed = (stage >= 0) & (number < MAX_MESSAGES)
    if not is_placed.any():
        return None
    n_stages, n_numbers = int(max(stage.max(), other.max())) + 1, int(number.max()) + 1
    cell = stage * n_numbers + number
    is_known = is_placed & (other >= 0) & (other != stage)
    votes = np.zeros((n_stages * n_numbers, n_stages))
    np.add.at(votes, (cell[is_known], other[is_known]), 1)
    n_calls = np.bincount(cell[is_placed], minlength=len(votes))
    sums = np.bincount(cell[is_placed], wait_us[is_placed], len(votes))
    at = np.flatnonzero(n_calls)
    sender = np.where(votes[at].any(axis=1), votes[at].argmax(axis=1), -1)
    return at // n_numbers, at % n_numbers, sums[at] / n_calls[at], sender
