"""The columns of kernel_details.csv → sums of its kernels, and its rows of communication."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from cluster_analysis.sources.columns.columns import are_places, damaged
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.kernel_groups import KEYS, Calls, KernelSums


def kernel_sums_of(path: Path) -> KernelSums:
    """Return the kernels of a columns file.

    Raises:
        BadFileError: the columns are damaged; so does the function below.
    """
    file = ColumnsFile(path, "kernels")
    texts = {key: file.names(key) if key == "name" else file.texts(key).dictionary_decode() for key in KEYS}
    figures = {name: file.ints(name) for name in ("n", "ps", "ps_min", "ps_max")}
    rows, waits = file.ints("wait.rows"), file.ints("wait_ps")
    n_kinds = len(figures["n"])
    _require({len(one) for one in (*texts.values(), *figures.values())} == {n_kinds})
    _require(len(rows) == len(waits) and are_places(rows, n_kinds))
    _require(not n_kinds or (figures["n"].min() > 0 and figures["ps_min"].min() >= 0))
    all_waits, is_missing = np.zeros(n_kinds, np.int64), np.ones(n_kinds, bool)
    all_waits[rows], is_missing[rows] = waits, False
    sums = KernelSums()
    if n_kinds:
        sums.add_sums(pa.table({**texts, **figures, "wait_ps": pa.array(all_waits, mask=is_missing)}))
    return sums


def kernel_calls_of(path: Path) -> Calls:
    """Return the rows of communication of a columns file."""
    file = ColumnsFile(path, "kernels")
    steps, names = file.texts("call.step").to_pylist(), file.names("call.name")
    starts, lengths = file.ints("call.start_ns"), file.floats("call.us")
    _require(len(steps) == len(names) == len(starts) == len(lengths))
    return Calls([step or "" for step in steps], names, pa.array(starts, mask=starts < 0), pa.array(lengths))


def _require(is_sound: object) -> None:
    if not is_sound:
        raise damaged("kernels of other lengths")
