"""Large values go from process to process in files, and through the pipe where that cannot be."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from cluster_analysis.engine.handover import dumps, loads, set_aside


def large(n: int = 50_000) -> dict[str, npt.NDArray[np.float64] | pa.Table]:
    """A value with arrays that begin at odd places of a file."""
    return {
        "one": np.arange(n + 1) / 7.0,
        "column by column": np.asfortranarray(np.arange(2.0 * n).reshape(n, 2)),
        "every second": np.arange(2.0 * n)[::2],
        "table": pa.table({"number": pa.array(range(n)), "text": pa.array([str(i) for i in range(n)])}),
    }


def test_a_large_value_is_the_same_behind_the_file(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path), large())
    assert len(list(tmp_path.iterdir())) == 1
    got = loads(sent)
    for name, value in large().items():
        assert got[name].equals(value) if isinstance(value, pa.Table) else np.array_equal(got[name], value)
    assert list(tmp_path.iterdir()) == []


def test_arrays_can_be_changed_by_whom_they_are_handed_to(tmp_path: Path) -> None:
    got = loads(dumps(str(tmp_path), np.zeros(50_000)))
    got[3] = 1.0
    assert got.sum() == 1.0


def test_what_is_set_aside_is_the_same_and_leaves_no_file(tmp_path: Path) -> None:
    got = set_aside(str(tmp_path), large())
    for name, value in large().items():
        assert got[name].equals(value) if isinstance(value, pa.Table) else np.array_equal(got[name], value)
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_set_aside_stays_as_it_is(tmp_path: Path) -> None:
    assert set_aside(str(tmp_path / "missing"), np.ones(50_000)).sum() == 50_000


def test_a_small_value_needs_no_file(tmp_path: Path) -> None:
    assert pickle.loads(dumps(str(tmp_path), [np.zeros(9), "text"]))[1] == "text"
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_written_goes_as_it_is(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path / "missing"), np.ones(50_000))
    assert pickle.loads(sent).sum() == 50_000


def test_a_value_whose_file_is_gone_is_an_error(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path), np.zeros(50_000))
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(FileNotFoundError):
        loads(sent)
