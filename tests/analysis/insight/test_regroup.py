"""Pieces of the ranks' files put behind one another: by the compiled module the same bytes as by Python."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.engine.tasks import SpanTable
from cluster_analysis.insight.communication import CommunicationInput, write_communication
from cluster_analysis.insight.op_copy import OpenFiles
from cluster_analysis.sources.compiled.reader import CHOICE, compiled
from cluster_analysis.tables.schema import OPERATOR_SPANS, PACKETS, TOTALS
from cluster_run.errors import InputError
from cluster_run.ids import Rank

KEYS = ["hcom_allReduce__1_0_1@7", "hcom_send__2_0_1@8", "x@é", "twice@7"]
MEMBERS = {"7": (Rank(0), Rank(3), Rank(12)), "8": (Rank(3), Rank(12)), "é": (Rank(0),)}
needs_module = pytest.mark.skipif(compiled() is None, reason="no compiled module here")


def _given(folder: Path, rows: list[tuple[int, int, int, int, int]]) -> CommunicationInput:
    """Rows are rank, step, key, offset and length, in files of 5000 bytes."""
    files = {}
    for rank in (0, 3, 12):
        path = folder / f"{rank}.json"
        path.write_bytes((f"{rank:02d}" + "abcdefgh" * 1000).encode()[:5000])
        files[rank] = str(path)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    spans = pa.table(
        {
            "rank": pa.array(columns[0], pa.int32()),
            "step": pa.array(columns[1], pa.int64()),
            "key": pa.array([KEYS[one] for one in columns[2]], pa.string()).dictionary_encode(),
            "position": pa.array(range(len(rows)), pa.int32()),
            "offset": pa.array(columns[3], pa.int64()),
            "length": pa.array(columns[4], pa.int32()),
        },
        schema=OPERATOR_SPANS,
    )
    return CommunicationInput([SpanTable(spans)], TOTALS.empty_table(), PACKETS.empty_table(), MEMBERS, files)


def _written(given: CommunicationInput) -> bytes:
    stream = io.BytesIO()
    write_communication(given, stream)
    return stream.getvalue()


row = st.tuples(
    st.sampled_from([0, 3, 12]),
    st.integers(1, 2),
    st.integers(0, 3),
    st.integers(0, 4000),
    st.integers(0, 1000),
)


@needs_module
@given(st.lists(row, max_size=40))
def test_both_ways_write_the_same_bytes(tmp_path: Path, rows: list[tuple[int, int, int, int, int]]) -> None:
    given = _given(tmp_path, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHOICE, "python")
        by_python = _written(given)
    assert _written(given) == by_python


@pytest.mark.parametrize("choice", ["compiled", "python"])
def test_a_file_that_became_shorter_ends_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    given = _given(tmp_path, [(0, 1, 0, 0, 100), (3, 1, 0, 4900, 100)])
    monkeypatch.setenv(CHOICE, choice)
    (tmp_path / "3.json").write_bytes(b"short")
    with pytest.raises(InputError, match=r"3\.json: became shorter while it was read"):
        _written(given)


def test_only_so_many_files_are_open_at_once(tmp_path: Path) -> None:
    given = _given(tmp_path, [])
    with OpenFiles(given.files, n_open=2) as files:
        assert files.descriptors([0, 3, 12]) is None
        first = files.descriptors([0, 3])
        assert first is not None
        second = files.descriptors([3, 12])
        assert second is not None
        assert [os.pread(one, 2, 0) for one in second] == [b"03", b"12"]
        assert files.read(0, 2, 0) == b"00"


@pytest.fixture
def pieces(tmp_path: Path) -> Iterator[dict[str, Any]]:
    (tmp_path / "file").write_bytes(b"0123456789")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    yield {
        "keys": np.array([0, 0], np.int32),
        "files": np.array([0, 1], np.int32),
        "offsets": np.array([2, 4], np.int64),
        "lengths": np.array([3, 4], np.int32),
        "texts": (np.array([0, 3], np.int32), b"a@b"),
        "ranks": np.array([7, 10], np.int32),
        "descriptors": np.array([descriptor] * 2, np.int32),
    }
    os.close(descriptor)


@needs_module
def test_pieces_stand_by_key_and_rank(pieces: dict[str, Any]) -> None:
    module = compiled()
    assert module is not None
    assert module.regroup(*pieces.values()) == b'"a@b": {"7": 234, "10": 4567}'


@needs_module
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keys", np.array([0, 1], np.int32)),
        ("keys", np.array([0, -1], np.int32)),
        ("keys", np.array([0], np.int32)),
        ("files", np.array([0, 2], np.int32)),
        ("offsets", np.array([2, -4], np.int64)),
        ("offsets", np.array([2, 7], np.int64)),
        ("offsets", np.array([2, 2**63 - 1], np.int64)),
        ("lengths", np.array([3, -1], np.int32)),
        ("lengths", np.array([3, 7], np.int32)),
        ("texts", (np.array([0, 4], np.int32), b"a@b")),
        ("texts", (b"", b"")),
        ("ranks", np.array([7, -10], np.int32)),
        ("descriptors", np.array([-1, -1], np.int32)),
    ],
)
def test_what_names_something_that_is_not_there_is_left_to_python(
    pieces: dict[str, Any], name: str, value: object
) -> None:
    module = compiled()
    assert module is not None
    assert module.regroup(*(pieces | {name: value}).values()) is None
