"""Small hand-made databases, and how the tests of them read a rank."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from cluster_analysis.tables.model import Selection
from cluster_analysis.tables.rank_tables import RankTables
from tests.analysis.one_rank import read_rank
from tests.analysis.sources.builders import (
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    source_of,
    write_analysis_db,
    write_info,
)

NS = 1_000
BEGIN = 1_736_410_576_386_409_710


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: [str(value) for value in row.values()])


def changed(path: Path, *statements: str) -> int:
    """Run statements on a database, and return how many rows the last one changed."""
    n_rows = 0
    with closing(sqlite3.connect(path)) as base, base:
        for statement in statements:
            n_rows = base.execute(statement).rowcount
    return n_rows


def profiled(root: Path, *statements: str, framework: str = "pt", steps: bool = True) -> Path:
    """A capture with the profiler's own database alone, on which these statements were run."""
    output = database_capture(root, f"rank0_ascend_{framework}")
    path = output / f"ascend_{'pytorch' if framework == 'pt' else 'mindspore'}_profiler_0.db"
    profiler_db(path, steps=steps)
    changed(path, *statements)
    return output


def analysed(root: Path, *statements: str, row: tuple[object, ...] = STEP_ROW) -> Path:
    """A capture with analysis.db alone: step 50 with all operators and links; then these statements."""
    output = database_capture(root)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": row})  # type: ignore[dict-item]
    changed(output / "analysis.db", *statements)
    return output


def database_capture(root: Path, name: str = "rank0_ascend_pt") -> Path:
    output = root / name / OUTPUT
    output.mkdir(parents=True)
    write_info(root / name, 0)
    return output


def profiler_db(path: Path, *, steps: bool = True, strings: dict[int, str] | None = None) -> None:
    """Two compute tasks (10-30 µs and 25-40 µs), an operator (35-60 µs), a receive (70-80 µs)."""
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        names = {
            1: "hcom_allReduce__210_0_1",
            2: "hcom_receive__210_1_1",
            3: "10.0.0.1%eth0_60000_0_17",
            4: "MatMulV2",
            5: "AI_CORE",
        }
        base.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", (strings or names).items())
        base.execute(
            "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, globalTaskId INTEGER, taskType INTEGER)"
        )
        base.execute(
            "CREATE TABLE COMPUTE_TASK_INFO (globalTaskId INTEGER, opType INTEGER, taskType INTEGER, "
            "name INTEGER, inputShapes INTEGER, outputShapes INTEGER)"
        )
        base.execute(
            "CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, "
            "groupName INTEGER)"
        )
        for number, (start, end) in enumerate([(10, 30), (25, 40)]):
            base.execute(
                "INSERT INTO TASK VALUES (?, ?, ?, 0)", (BEGIN + start * NS, BEGIN + end * NS, number)
            )
            base.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (?, 4, 5, NULL, NULL, NULL)", (number,))
        for name, start, end in [(1, 35, 60), (2, 70, 80)]:
            base.execute(
                "INSERT INTO COMMUNICATION_OP VALUES (?, ?, ?, 3)",
                (name, BEGIN + start * NS, BEGIN + end * NS),
            )
        if steps:
            base.execute("CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)")
            base.execute("INSERT INTO STEP_TIME VALUES (50, ?, ?)", (BEGIN, BEGIN + 100 * NS))
    base.close()


def read(output: Path, **selection: Any) -> RankTables:
    return read_rank(source_of(output.parent), Selection(**selection))
