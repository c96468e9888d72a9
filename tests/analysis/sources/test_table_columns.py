"""The compiled reader of database tables gives what SQLite gives, or leaves the table to SQLite."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.sources.compiled import reader
from cluster_analysis.sources.compiled.cells import Cells, as_list, is_coded
from cluster_analysis.sources.compiled.table_columns import CELLS as AS_STORED
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.errors import BadFileError, unheard
from tests.analysis.sources.test_compiled_reader import CAPTURES, ROOT, by_python

if reader.compiled() is None:
    pytest.skip("the compiled reader could not be built here", allow_module_level=True)

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
LONG = "长" * 3_000
CELLS = [
    (1, -1, 0.5, "a"),
    (2, 127, 3.0, ""),
    (3, -(2**63), -1e300, LONG),
    (4, 2**63 - 1, 1e-300, None),
    (9, None, None, "\0b"),
    (2**40, 2**47, 7, "c" * 70),
]


def tables_of(path: Path) -> dict[str, list[str]]:
    with sqlite3.connect(path) as base:
        names = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {
            name: [row[0] for row in base.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            for name in names
        }
    base.close()
    return found


READERS: dict[str, Callable[..., list[Cells]]] = {
    "cells": Database.cells,
    "floats": partial(Database.cells, are_floats=True),
    "codes": Database.coded,
}


def outcome(path: Path, table: str, columns: Sequence[str], wish: str) -> object:
    """What reading columns gives or raises; as text, which tells 1 from 1.0 and shows every digit."""
    try:
        with open_database(path, unheard) as database:
            found = READERS[wish](database, table, *columns)
    except BadFileError:
        return "bad"
    for one in found:
        if isinstance(one, pa.Array):
            one.validate(full=True)
    return repr([(*how_it_lies(one), as_list(one)) for one in found])


def how_it_lies(cells: Cells) -> tuple[str, list[str]]:
    """The type, and the texts of a dictionary."""
    if isinstance(cells, list):
        return "", []
    return str(cells.type), cells.dictionary.to_pylist() if is_coded(cells) else []


def is_read_by_pages(path: Path, table: str, columns: Sequence[str]) -> bool:
    with open_database(path, unheard) as database:
        about = database._table(table)
        return database._read_by_pages(about, {name.casefold(): AS_STORED for name in columns}) is not None


def assert_the_same(path: Path, table: str, columns: Sequence[str]) -> None:
    for wish in READERS:
        found = outcome(path, table, columns, wish)
        with by_python():
            assert found == outcome(path, table, columns, wish), (path, table)


def hand_made(path: Path, declared: str, *before: str) -> Path:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as base:
        for statement in before:
            base.execute(statement)
        base.execute(f"CREATE TABLE T {declared}")
        base.executemany("INSERT INTO T VALUES (?, ?, ?, ?)", CELLS)
    base.close()
    return path


def assert_all_tables_are_read_as_sqlite_reads_them(path: Path) -> None:
    for table, columns in tables_of(path).items():
        assert is_read_by_pages(path, table, columns), (path, table)
        assert_the_same(path, table, columns)


def test_every_table_of_every_real_database_is_read_from_its_pages_and_as_sqlite_reads_it() -> None:
    files = sorted(CAPTURES.rglob("*.db"))
    if not files:
        pytest.skip("no real captures here")
    for path in files:
        assert_all_tables_are_read_as_sqlite_reads_them(path)


def test_every_table_of_a_simulated_database_is_read_from_its_pages(tmp_path: Path) -> None:
    job = ("--tp", "2", "--pp", "1", "--dp", "1", "--steps", "2", "--form", "db", "--quiet")
    command = [sys.executable, "-m", "cluster_simulate", tmp_path / "run", *job]
    subprocess.run(command, cwd=ROOT, check=True, timeout=50)
    files = sorted(tmp_path.rglob("*.db"))
    assert len(files) == 4
    for path in files:
        assert_all_tables_are_read_as_sqlite_reads_them(path)


@pytest.mark.parametrize("page_bytes", [512, 1024, 4096, 65536])
@pytest.mark.parametrize(
    "declared",
    ["(a INTEGER PRIMARY KEY, b INTEGER, c REAL, d TEXT)", "(a, b, c, d)", "(a INT, b, c FLOAT, d)"],
)
def test_cells_of_all_types_and_lengths_are_read_as_sqlite_reads_them(
    tmp_path: Path, page_bytes: int, declared: str
) -> None:
    path = hand_made(tmp_path / "a.db", declared, f"PRAGMA page_size = {page_bytes}")
    assert is_read_by_pages(path, "T", "abcd")
    assert_the_same(path, "T", "abcd")
    assert_the_same(path, "T", "db")


def test_a_table_of_many_pages_is_read_in_the_order_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    chance = random.Random(1)
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA page_size = 512")
        base.execute("CREATE TABLE T (a INTEGER PRIMARY KEY, b, c)")
        keys = chance.sample(range(-(10**6), 10**6), 20_000)
        base.executemany("INSERT INTO T VALUES (?, ?, ?)", ((key, key * 3, f"t{key}") for key in keys))
        base.execute("DELETE FROM T WHERE a % 3 = 0")
        base.execute("CREATE INDEX I ON T (b, a)")
    base.close()
    assert is_read_by_pages(path, "T", "abc")
    assert_the_same(path, "T", "abc")
    assert_the_same(path, "T", "ab")


@pytest.mark.parametrize(
    ("declared", "statements"),
    [
        ("(a INTEGER PRIMARY KEY, b, c, d) WITHOUT ROWID", ()),
        ("(a INTEGER PRIMARY KEY DESC, b, c, d)", ()),
        ("(a, b, c, d)", ("PRAGMA encoding = 'UTF-16'",)),
    ],
)
def test_unusual_tables_are_left_to_sqlite(
    tmp_path: Path, declared: str, statements: tuple[str, ...]
) -> None:
    path = hand_made(tmp_path / "a.db", declared, *statements)
    assert not is_read_by_pages(path, "T", "abcd")
    assert_the_same(path, "T", "abcd")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE T ADD COLUMN e DEFAULT 5",
        "ALTER TABLE T ADD COLUMN e AS (b + 1)",
        "UPDATE T SET d = x'ff00' WHERE a = 2",
        "UPDATE T SET d = CAST(x'ff41' AS TEXT) WHERE a = 2",
    ],
)
def test_cells_that_are_not_as_usual_in_the_file_are_left_to_sqlite(tmp_path: Path, change: str) -> None:
    path = hand_made(tmp_path / "a.db", "(a, b, c, d)")
    with sqlite3.connect(path) as base:
        base.execute(change)
    base.close()
    columns = tables_of(path)["T"]
    assert_the_same(path, "T", columns)
    assert_the_same(path, "T", "ab")
    assert not is_read_by_pages(path, "T", columns) or "AS (" in change


def test_columns_that_other_tools_have_added_do_not_slow_the_others(tmp_path: Path) -> None:
    path = hand_made(tmp_path / "a.db", "(a, b, c, d)")
    with sqlite3.connect(path) as base:
        base.execute("ALTER TABLE T ADD COLUMN depth DEFAULT 0")
    base.close()
    assert is_read_by_pages(path, "T", "abcd")
    assert_the_same(path, "T", "abcd")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "a.db"
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA page_size = 512")
        base.execute("CREATE TABLE T (a INTEGER PRIMARY KEY, b INTEGER, c REAL, d TEXT)")
        base.executemany("INSERT INTO T VALUES (?, ?, ?, ?)", CELLS)
        base.executemany("INSERT INTO T VALUES (?, ?, ?, ?)", ((n, n, n / 2, f"t{n}") for n in range(10, 99)))
    base.close()
    return path.read_bytes()


@FUZZ
@given(data=st.data())
def test_a_spoiled_database_gives_what_sqlite_gives_or_is_bad_for_both(
    tmp_path: Path, small: bytes, data: st.DataObject
) -> None:
    spoiled = bytearray(small)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(spoiled) - 1))
        spoiled[place] = data.draw(st.sampled_from([0, 1, 2, 5, 13, 127, 128, 255]) | st.integers(0, 255))
    if data.draw(st.booleans()):
        del spoiled[data.draw(st.integers(0, len(spoiled))) :]
    path = tmp_path / "a.db"
    path.write_bytes(spoiled)
    assert_the_same(path, "T", "abcd")


def test_a_spoiled_schema_is_bad_for_both_though_its_like_was_sound(tmp_path: Path, small: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(small)
    assert outcome(path, "T", "abcd", "cells") != "bad"
    chance = random.Random(2)
    for _ in range(400):
        spoiled = bytearray(small)
        place = chance.choice([*range(110), *range(400, 512)])
        spoiled[place] = chance.choice([0, 1, 2, 13, 127, 255, small[place] ^ 1, small[place] ^ 32])
        path.write_bytes(spoiled)
        found = outcome(path, "T", "abcd", "cells")
        with by_python():
            assert found == outcome(path, "T", "abcd", "cells"), (place, spoiled[place])


def test_sqlite_is_not_asked_of_what_is_like_a_file_that_it_found_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (hand_made(tmp_path / name, "(a, b, c, d)") for name in ("a.db", "b.db"))
    with sqlite3.connect(second) as base:
        base.execute("INSERT INTO T VALUES (7, 8, 9, 'more')")
    base.close()
    wanted = outcome(first, "T", "abcd", "cells"), outcome(second, "T", "abcd", "cells")
    monkeypatch.setattr(sqlite3, "connect", None)
    assert (outcome(first, "T", "abcd", "cells"), outcome(second, "T", "abcd", "cells")) == wanted
    assert wanted[0] != wanted[1]


@pytest.mark.slow
def test_hostile_databases_do_nothing_that_sanitizers_find(tmp_path: Path, small: bytes) -> None:
    (tmp_path / "a.db").write_bytes(small)
    command = ["bash", ROOT / "tools" / "fuzz" / "fuzz.sh", "5", tmp_path / "a.db"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)
    if ended.returncode == 77:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_no_file_stays_open(tmp_path: Path) -> None:
    path = hand_made(tmp_path / "a.db", "(a, b, c, d)")
    before = len(os.listdir("/proc/self/fd"))
    outcome(path, "T", "abcd", "cells")
    assert len(os.listdir("/proc/self/fd")) == before
