"""The tables of the fleet's database, and the steps from one version of them to the next."""

from __future__ import annotations

import sqlalchemy as sa

META = sa.MetaData()

VERSION = sa.Table("fleet_version", META, sa.Column("version", sa.Integer, nullable=False))

#: A device (`host` is its host's number) or a host (null).
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

#: What makes each version of the one before it; the first makes an empty database version 1.
MIGRATIONS: tuple[tuple[sa.Table, ...], ...] = ((UNIT, RUN, SERIES, FINDING), (ACTION,), (), ())
#: Columns that tables got later: `physical`, the number of a device that its driver has for it, in version 3;
#: `devices` in version 4.
ADDED = (UNIT.c.physical, ACTION.c.devices)


def migrate(connection: sa.Connection, found: int) -> None:
    """Bring the tables of version `found` to the newest, within the connection's transaction."""
    for tables in MIGRATIONS[found:]:
        META.create_all(connection, tables=list(tables), checkfirst=True)
    for column in ADDED:
        table = column.table.name
        if column.name not in {one["name"] for one in sa.inspect(connection).get_columns(table)}:
            connection.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN {column.name} {column.type}"))
    connection.execute(sa.delete(VERSION))
    connection.execute(sa.insert(VERSION).values(version=len(MIGRATIONS)))
