"""The tables of the fleet's database, how arrays lie in their rows, and the steps from version to version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from cluster_fleet.identity import Known
from cluster_fleet.judging.evidence import Samples
from cluster_fleet.records import History, NamedFinding, RunLine, RunRecord, Series, Unit

#: How arrays lie in the database: little-endian, whatever the machine is.
NUMBERS, FLOATS = np.dtype("<i4"), np.dtype("<f4")

META = sa.MetaData()

VERSION = sa.Table("fleet_version", META, sa.Column("version", sa.Integer, nullable=False))

#: A device (`host` is its host's number) or a host (null). `physical`: the number that its driver has for it.
UNIT = sa.Table(
    "unit",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("host", sa.Integer),
    sa.Column("first_s", sa.Float, nullable=False),
    sa.Column("last_s", sa.Float, nullable=False),
    sa.Column("physical", sa.Integer),
)
RUN = sa.Table(
    "run",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("captured_s", sa.Float, nullable=False),
    sa.Column("hours", sa.Float, nullable=False),
    sa.Column("step_ms", sa.Float, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("versions", sa.Text, nullable=False),
)
#: One row a run and metric: numbers of units (int32), values and errors (float32), little-endian. A row a
#: value would be ten million of them after a thousand runs of ten thousand devices.
SERIES = sa.Table(
    "series",
    META,
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("units", sa.LargeBinary, nullable=False),
    sa.Column("amounts", sa.LargeBinary, nullable=False),
    sa.Column("errors", sa.LargeBinary, nullable=False),
)
FINDING = sa.Table(
    "finding",
    META,
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("finding", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("share", sa.Float, nullable=False),
    sa.Column("unit", sa.Integer, primary_key=True),
)
#: Since version 2: what was done about units, by cluster-act, and undone. `undone_s` null: it stands.
#: `devices`: numbers of the driver, as they were named.
ACTION = sa.Table(
    "action",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at_s", sa.Float, nullable=False),
    sa.Column("way", sa.Text, nullable=False),
    sa.Column("node", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("undone_s", sa.Float),
    sa.Column("devices", sa.Text),
)

#: The newest version: one more with each column that is added; version 4 had 37.
NEWEST = sum(len(table.columns) for table in META.tables.values()) - 33


def migrate(connection: sa.Connection) -> None:
    """Bring the tables of any older version, or of an empty database, to the newest, in one transaction.

    A column that a table gets is null in the rows that are there.
    """
    META.create_all(connection, checkfirst=True)
    for table in META.sorted_tables:
        there = {one["name"] for one in sa.inspect(connection).get_columns(table.name)}
        for column in (one for one in table.columns if one.name not in there):
            kind = column.type.compile(connection.dialect)
            connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"))
    connection.execute(sa.delete(VERSION))
    connection.execute(sa.insert(VERSION).values(version=NEWEST))


def run_row(run: RunRecord) -> dict[str, Any]:
    """Return the row of a run: the fields that `RUN` has columns for."""
    row = {one.name: getattr(run, one.name) for one in RUN.columns if one is not RUN.c.number}
    return {**row, "versions": json.dumps(dict(run.versions))}


def run_of(
    row: Any, units: Sequence[Known], series: Sequence[Series], findings: Sequence[NamedFinding]
) -> RunRecord:
    """Return the run that `run_row` made a row of; a column that is younger than it has its default."""
    own = {name: value for name, value in row._mapping.items() if value is not None}
    own.pop(RUN.c.number.name)
    own["versions"] = json.loads(row.versions)
    return RunRecord(**own, units=units, series=series, findings=findings)


def series_row(run: int, one: Series, numbers: dict[str, int]) -> dict[str, Any]:
    """Return the row of one metric of a run, where it is known; `numbers` are those of the units by key."""
    known = np.isfinite(one.values)
    units = np.array([numbers[key] for key in one.keys], NUMBERS)
    return {
        "run": run,
        "metric": one.metric,
        "units": units[known].tobytes(),
        "amounts": np.asarray(one.values, FLOATS)[known].tobytes(),
        "errors": np.asarray(one.errors, FLOATS)[known].tobytes(),
    }


def series_of(row: Any, units: dict[int, Unit]) -> Series:
    """Return what `series_row` made a row of, without units that are no more."""
    numbers = np.frombuffer(row.units, NUMBERS).tolist()
    keep = [at for at, one in enumerate(numbers) if one in units]
    keys = [units[numbers[at]].known.key for at in keep]
    return Series(
        row.metric, keys, np.frombuffer(row.amounts, FLOATS)[keep], np.frombuffer(row.errors, FLOATS)[keep]
    )


def history_of(
    metric: str, runs: Sequence[RunLine], lengths: Sequence[int], rows: Iterable[Sequence[Any]]
) -> History:
    """Lay one metric of the runs one behind the other.

    `lengths` say of how many units each run has it; `rows` are run, units, values and errors, in any order.
    """
    ends = np.cumsum(lengths, dtype=int).tolist()
    part_of = {run.number: slice(end - n, end) for run, n, end in zip(runs, lengths, ends, strict=True)}
    numbers = np.empty(sum(lengths), NUMBERS)
    values, errors = (np.empty(len(numbers), FLOATS) for _ in range(2))
    for run, *own in rows:
        if run in part_of:  # else it was added meanwhile
            for column, one in zip((numbers, values, errors), own, strict=True):
                column[part_of[run]] = np.frombuffer(one, column.dtype)
    is_there = np.bincount(numbers) > 0
    unit = (np.cumsum(is_there, dtype=np.int32) - 1)[numbers]
    run_of = np.repeat(np.arange(len(runs), dtype=np.int32), lengths)
    units = np.flatnonzero(is_there)
    return History(metric, runs, units, Samples(run_of, unit, values, errors, len(runs), len(units)))
