"""Large values go from process to process in files, and through the pipe where that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.engine.handover import Handed, handed


def large(n: int = 50_000) -> dict[str, npt.NDArray[np.float64] | pa.Table]:
    """A value with arrays that begin at odd places of a file."""
    return {
        "one": np.arange(n + 1) / 7.0,
        "column by column": np.asfortranarray(np.arange(2.0 * n).reshape(n, 2)),
        "every second": np.arange(2.0 * n)[::2],
        "table": pa.table({"number": pa.array(range(n)), "text": pa.array([str(i) for i in range(n)])}),
    }


def test_a_large_value_is_the_same_behind_the_file(tmp_path: Path) -> None:
    sent = handed(large(), f"{tmp_path}/value")
    assert isinstance(sent, Handed)
    got = sent.take()
    for name, value in large().items():
        assert got[name].equals(value) if isinstance(value, pa.Table) else np.array_equal(got[name], value)
    assert list(tmp_path.iterdir()) == []


def test_arrays_can_be_changed_by_whom_they_are_handed_to(tmp_path: Path) -> None:
    sent = handed(np.zeros(50_000), f"{tmp_path}/value")
    assert isinstance(sent, Handed)
    got = sent.take()
    got[3] = 1.0
    assert got.sum() == 1.0


def test_a_small_value_needs_no_file(tmp_path: Path) -> None:
    assert handed([np.zeros(9), "text"], f"{tmp_path}/value")[1] == "text"
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_written_goes_as_it_is(tmp_path: Path) -> None:
    value = np.zeros(50_000)
    assert handed(value, f"{tmp_path}/missing/value") is value
