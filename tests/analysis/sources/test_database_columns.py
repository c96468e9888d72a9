"""Whole columns of a database hold what SQLite gives, cell by cell, and kernels are summed as by hand."""

from __future__ import annotations

import gc
import os
import sqlite3
import weakref
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.db.cells import as_number
from cluster_analysis.sources.db.sqlite import kept_open, open_database
from cluster_analysis.sources.db.tasks import kernel_sums, last_task_ns
from cluster_analysis.sources.errors import BadFileError, unheard

LONG = "长" * 3_000
CELLS: list[tuple[object, ...]] = [
    (1, -1, 0.5, "a"),
    (2, 127, 3.0, ""),
    (3, -(2**63), -1e300, LONG),
    (4, 2**63 - 1, 1e-300, None),
    (9, None, None, "\0b"),
    (2**40, 2**47, 7, "c" * 70),
]
CELL = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=3)
)


def write(path: Path, declared: str, rows: Sequence[tuple[object, ...]], *statements: str) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(f"CREATE TABLE T {declared}")
        base.executemany("INSERT INTO T VALUES (?, ?, ?, ?)", rows)
        for statement in statements:
            base.execute(statement)
    return path


def columns_of(path: Path) -> tuple[list[list[object]], list[list[float]]]:
    """All columns as texts, and as numbers."""
    with open_database(path, unheard) as database:
        texts = database.texts("T", *"abcd").values()
        numbers = database.numbers("T", *"abcd").values()
    for one in texts:
        one.validate(full=True)
    return [one.to_pylist() for one in texts], [one.tolist() for one in numbers]


def told(columns: Sequence[Sequence[object]]) -> tuple[list[list[object]], list[list[float]]]:
    """What these cells are as texts, and as numbers."""
    texts = [[None if cell is None else str(cell) for cell in column] for column in columns]
    return texts, [list(map(as_number, column)) for column in columns]


def is_same(one: object, other: object) -> bool:
    """Tell 1 from 1.0, every digit, and NaN from nothing."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(
    "declared",
    [
        "(a INTEGER PRIMARY KEY, b INTEGER, c REAL, d TEXT)",
        "(a, b, c, d)",
        "(a INT, b, c FLOAT, d)",
        "(a INTEGER PRIMARY KEY, b, c, d) WITHOUT ROWID",
        "(a INTEGER PRIMARY KEY DESC, b, c, d)",
    ],
)
def test_cells_of_all_types_and_lengths_are_those_of_sqlite(tmp_path: Path, declared: str) -> None:
    path = write(tmp_path / "a.db", declared, CELLS)
    with closing(sqlite3.connect(path)) as base:
        rows = base.execute("SELECT a, b, c, d FROM T NOT INDEXED").fetchall()
    assert is_same(columns_of(path), told(list(zip(*rows, strict=True))))


@given(st.lists(st.tuples(CELL, CELL, CELL, CELL), max_size=12))
def test_every_cell_is_a_text_and_a_number_whatever_stands_beside_it(
    tmp_path: Path, rows: list[tuple[object, ...]]
) -> None:
    path = write(tmp_path / "a.db", "(a, b, c, d)", rows)
    assert is_same(columns_of(path), told(list(zip(*rows, strict=True)) or [()] * 4))


def test_a_column_whose_type_changes_after_many_rows_keeps_every_cell(tmp_path: Path) -> None:
    rows = [*((at, at, at / 2, str(at)) for at in range(9_000)), (None, "x", 3, 4)]
    path = write(tmp_path / "a.db", "(a, b, c, d)", rows)
    assert is_same(columns_of(path), told(list(zip(*rows, strict=True))))


def test_a_text_that_is_not_utf_8_costs_no_other_cell(tmp_path: Path) -> None:
    spoil = "UPDATE T SET d = CAST(x'ff41' AS TEXT) WHERE a = 2"
    path = write(tmp_path / "a.db", "(a, b, c, d)", CELLS, spoil)
    wanted = [list(column) for column in zip(*CELLS, strict=True)]
    wanted[3][1] = "\ufffdA"
    assert is_same(columns_of(path), told(wanted))


def test_utf_16_and_added_columns_are_read_as_sqlite_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA encoding = 'UTF-16'")
        base.execute("CREATE TABLE T (a, b, c)")
        base.execute("INSERT INTO T VALUES (1, 2, '长')")
        base.execute("ALTER TABLE T ADD COLUMN d DEFAULT 5")
        base.execute("ALTER TABLE T ADD COLUMN e AS (b + 1)")
    assert columns_of(path)[0] == [["1"], ["2"], ["长"], ["5"]]
    with open_database(path, unheard) as database:
        assert not database.has("T", "e"), "computed columns are nobody's measurement"


def test_no_file_stays_open_and_each_is_opened_once_within(tmp_path: Path) -> None:
    path = write(tmp_path / "a.db", "(a, b, c, d)", CELLS)
    before = len(os.listdir("/proc/self/fd"))
    with kept_open():
        with open_database(path, unheard) as first, open_database(path, unheard) as second:
            assert first is second
        assert first.rows("SELECT 1") == [(1,)]
    with pytest.raises(BadFileError):
        first.rows("SELECT 1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_database_and_its_columns_are_gone_without_a_look_for_cycles(tmp_path: Path) -> None:
    path = write(tmp_path / "a.db", "(a, b, c, d)", CELLS)
    gc.collect()
    gc.disable()
    try:
        with open_database(path, unheard) as database:
            cells = database.texts("T", "a")["a"]
            gone = weakref.ref(database), weakref.ref(cells)
        del database, cells
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


TIME = st.sampled_from([0, 1, 5, 9, 2**40, -3, None, 2.5, "7"])
ID = st.sampled_from([1, 2, 3, 4, 5, None, "x"])


@given(st.lists(st.tuples(TIME, TIME, ID), max_size=12), st.lists(st.tuples(ID, ID, ID), max_size=8))
def test_kernels_are_summed_by_their_texts_as_by_hand(
    tmp_path: Path, tasks: list[tuple[object, ...]], kernels: list[tuple[object, ...]]
) -> None:
    path = tmp_path / "a.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE TASK (startNs, endNs, globalTaskId)")
        base.execute("CREATE TABLE COMPUTE_TASK_INFO (globalTaskId, opType, taskType)")
        base.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        base.executemany("INSERT INTO TASK VALUES (?, ?, ?)", tasks)
        base.executemany("INSERT INTO COMPUTE_TASK_INFO VALUES (?, ?, ?)", kernels)
        base.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(1, "one"), (2, "two"), (3, "one")])
    texts = {1: "one", 2: "two", 3: "one"}
    wanted: dict[tuple[str | None, str | None], list[int]] = {}
    for begin, end, task in tasks:
        for known, kind, core in kernels:
            if type(task) is int and task == known and type(begin) is type(end) is int and end >= begin:
                key = texts.get(kind), texts.get(core)  # type: ignore[call-overload]
                wanted.setdefault(key, []).append(end - begin)
    with open_database(path, unheard) as database:
        rows = kernel_sums(database).to_pylist()
        assert last_task_ns(database) == max([0, *(end for _, end, _ in tasks if type(end) is int)])
    found = {
        (row["opType"], row["taskType"]): [row[name] for name in ("n", "all_ns", "min_ns", "max_ns")]
        for row in rows
    }
    assert found == {key: [len(own), sum(own), min(own), max(own)] for key, own in wanted.items()}


def test_times_that_no_sum_holds_are_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE TASK (startNs, endNs, globalTaskId)")
        base.execute("CREATE TABLE COMPUTE_TASK_INFO (globalTaskId, opType)")
        base.execute("INSERT INTO TASK VALUES (?, ?, 1)", (-(2**62), 2**62 + 5))
        base.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1)")
    with open_database(path, unheard) as database, pytest.raises(BadFileError):
        kernel_sums(database)
