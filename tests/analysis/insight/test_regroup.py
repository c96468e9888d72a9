"""Pieces of the ranks' files put behind one another, by key and rank."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.insight.communication import CommunicationInput, OpenFiles, write_communication_file
from cluster_analysis.tables.schema import OPERATOR_SPANS, PACKETS, TOTALS
from cluster_run.errors import InputError
from cluster_run.ids import Rank

KEYS = ["hcom_allReduce__1_0_1@7", "hcom_send__2_0_1@8", "x@é", "twice@7"]
MEMBERS = {"7": (Rank(0), Rank(3), Rank(12)), "8": (Rank(3), Rank(12)), "é": (Rank(0),)}


def _given(
    folder: Path, rows: list[tuple[int, int, int, int, int]]
) -> tuple[list[pa.Table], CommunicationInput]:
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
    return [spans], CommunicationInput(TOTALS.empty_table(), PACKETS.empty_table(), MEMBERS, files)


def _written(folder: Path, spans: list[pa.Table], given: CommunicationInput) -> bytes:
    path = folder / "written"
    write_communication_file(spans, given, str(path))
    return path.read_bytes()


def test_pieces_stand_by_key_and_rank(tmp_path: Path) -> None:
    given = _given(tmp_path, [(12, 1, 0, 2, 3), (0, 1, 0, 0, 2), (3, 1, 1, 0, 4)])
    assert _written(tmp_path, *given) == (
        b'{"(0, 3, 12)": {"step1": {"hcom_allReduce__1_0_1@7": {"0": 00, "12": abc}}}, '
        b'"(3, 12)": {"step1": {"hcom_send__2_0_1@8": {"3": 03ab}}}}\n'
    )


def test_a_file_that_became_shorter_ends_the_writing(tmp_path: Path) -> None:
    given = _given(tmp_path, [(0, 1, 0, 0, 100), (3, 1, 0, 4900, 100)])
    (tmp_path / "3.json").write_bytes(b"short")
    with pytest.raises(InputError, match=r"3\.json: became shorter while it was read"):
        _written(tmp_path, *given)


def test_only_so_many_files_are_open_at_once(tmp_path: Path) -> None:
    _, given = _given(tmp_path, [])
    with OpenFiles(given.files, n_open=2) as files:
        assert [files.read(rank, 2, 0) for rank in (0, 3, 12, 0)] == [b"00", b"03", b"12", b"00"]
