"""What the page's panel of one rank shows besides its times: who waits for it, its kernels, its memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_analysis.numeric.arrays import codes, numbers
from cluster_analysis.reports.page.packing import Array, Picture
from cluster_analysis.reports.page.waiting import waits_by_rank
from cluster_analysis.result import AnalysisResult

#: Kinds of kernels on the page: those that take most time over all ranks.
MAX_KERNEL_KINDS = 24
#: Shorter waits are left out: a large job has a million of them.
_LEAST_WAIT_US = 1.0
#: More pairs of group and rank than this keep the longest waits.
MAX_WAITS = 100_000


def build_per_rank(result: AnalysisResult, ranks: Sequence[int]) -> Picture:
    """Return waits and kernels of `ranks`, which are the rows of the page's other tables.

    The header names what numbers stand for: `wait_groups`, `kernel_kinds`, `memory_components`. Columns:
    `wait.group`, `wait.rank`, `wait.us`: what a rank of the group waits a step for that rank, in µs.
    `kernels`: (ranks × kinds), µs a step, NaN where a rank has no such kernel.
    `memory.rank`, `memory.component`, and peaks in bytes, NaN where they are not known.
    """
    n_steps = max(1, len(result.document.run.steps))
    groups, waits = _waits(result, n_steps)
    kinds, kernels = _kernels(result, ranks, n_steps)
    components, memory = _memory(result)
    header = {"wait_groups": groups, "kernel_kinds": kinds, "memory_components": components}
    return Picture(header, {**waits, **kernels, **memory})


def _waits(result: AnalysisResult, n_steps: int) -> tuple[tuple[str, ...], dict[str, Array]]:
    matched = result.table("matched")
    if not matched.num_rows:
        return (), {}
    by_group = waits_by_rank(matched, n_steps)
    groups = tuple(sorted(by_group))
    rows = [
        (number, rank, wait_us)
        for number, group in enumerate(groups)
        for rank, wait_us in sorted(by_group[group].items())
        if wait_us >= _LEAST_WAIT_US
    ]
    if len(rows) > MAX_WAITS:
        rows = sorted(sorted(rows, key=lambda row: -row[2])[:MAX_WAITS])
    number, rank, wait_us = zip(*rows, strict=True) if rows else ((), (), ())
    return groups, {
        "wait.group": np.asarray(number, np.int32),
        "wait.rank": np.asarray(rank, np.int32),
        "wait.us": np.asarray(wait_us, np.float32),
    }


def _kernels(
    result: AnalysisResult, ranks: Sequence[int], n_steps: int
) -> tuple[tuple[str, ...], dict[str, Array]]:
    table = result.table("operators")
    if not table.num_rows or not ranks:
        return (), {}
    names, kind_of_row = codes(table["op_type"])
    total_us = np.nan_to_num(numbers(table["total_us"]))
    by_kind = np.bincount(kind_of_row, total_us, len(names))
    kept = np.sort(np.argsort(-by_kind, kind="stable")[:MAX_KERNEL_KINDS])
    column = np.full(len(names), -1)
    column[kept] = np.arange(len(kept))
    ordered = np.asarray(ranks)
    of_row = table["rank"].to_numpy()
    row = np.minimum(np.searchsorted(ordered, of_row), len(ordered) - 1)
    known = (ordered[row] == of_row) & (column[kind_of_row] >= 0)
    cell = row[known] * len(kept) + column[kind_of_row][known]
    n_cells = len(ordered) * len(kept)
    sums = np.bincount(cell, total_us[known], n_cells) / n_steps
    sums[np.bincount(cell, minlength=n_cells) == 0] = np.nan
    return tuple(names[kind] for kind in kept), {"kernels": sums.astype(np.float32)}


def _memory(result: AnalysisResult) -> tuple[tuple[str, ...], dict[str, Array]]:
    table = result.table("memory_peaks")
    if not table.num_rows:
        return (), {}
    names, component = codes(table["component"])
    measured = ("allocated", "reserved", "peers_median", "capacity")
    return names, {
        "memory.rank": table["rank"].to_numpy().astype(np.int32),
        "memory.component": component.astype(np.int32),
        **{f"memory.{name}": numbers(table[f"{name}_bytes"]).astype(np.float32) for name in measured},
    }
