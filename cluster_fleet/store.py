"""The fleet's database: one SQLite file, or PostgreSQL by its URL. The one module that speaks SQL.

A run is added in one transaction or not at all, and once. Writers wait for each other: SQLite by its lock,
PostgreSQL by an advisory lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cluster_fleet.identity import Known, is_hash, with_names
from cluster_fleet.records import History, NamedFinding, RunLine, RunRecord, Unit
from cluster_fleet.tables import (
    ACTION,
    FINDING,
    NEWEST,
    NUMBERS,
    RUN,
    SERIES,
    UNIT,
    VERSION,
    history_of,
    migrate,
    run_of,
    run_row,
    series_of,
    series_row,
)
from cluster_run.errors import InputError, SchemaError

#: A writer waits as long for the others.
_PATIENCE_S = 60
#: Any number, the same in all our processes.
_LOCK = 7_210_385
#: Rows of one statement: some databases take no more parameters than 32 766.
_AT_ONCE = 1000


class Fleet:
    """An open database; `close` it, or use it in a `with`."""

    def __init__(self, where: str | Path, *, must_exist: bool = False, without: str = "") -> None:
        """Open it, make it where there is none, and bring its tables to this version.

        `without` is the fingerprint of a run that counts for nothing: no witness in its own case.

        Raises:
            InputError: it cannot be opened.
            SchemaError: a newer program made it.
        """
        text = str(where)
        is_url = "://" in text
        url = _url_of(text) if is_url else sa.URL.create("sqlite", database=text)
        #: What messages call it: never with a password, which may stand behind the question mark, too.
        self.name = url.set(query={}).render_as_string(hide_password=True) if is_url else text
        if must_exist and not is_url and not Path(text).exists():
            raise InputError(f"{text}: no such database", "cluster-fleet add RUN makes one")
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        self._counts = RUN.c.fingerprint != without
        self._is_sqlite = url.get_backend_name() == "sqlite"
        options: dict[str, Any] = {"connect_args": {"timeout": _PATIENCE_S}} if self._is_sqlite else {}
        try:
            self._engine = sa.create_engine(url, poolclass=sa.NullPool, **options)
        except (ImportError, sa.exc.ArgumentError) as error:
            raise InputError(
                f"{self.name}: {error}",
                "a file, or postgresql://USER@HOST/DATABASE with pip install 'cluster-profiler[fleet]'",
            ) from error
        if self._is_sqlite:
            sa.event.listen(self._engine, "connect", _begin_by_us)
            sa.event.listen(self._engine, "begin", _begin)
        with self._errors():
            self._bring_up_to_date()

    def add(self, run: RunRecord) -> bool:
        """Remember a run; return whether it was new. Of one that was not, what units are called is renewed.

        Raises:
            InputError: the database cannot be written.
        """
        with self._writing() as connection:
            known = sa.select(RUN.c.number).where(RUN.c.fingerprint == run.fingerprint)
            is_new = connection.execute(known).first() is None
            numbers = self._numbers(connection, run, adds=is_new)
            if not is_new:
                return False
            row = connection.execute(sa.insert(RUN).values(run_row(run))).inserted_primary_key
            number = int(row[0]) if row is not None else -1
            if run.series:
                rows = [series_row(number, one, numbers) for one in run.series]
                connection.execute(sa.insert(SERIES), rows)
            findings = [
                {"run": number, "finding": one.finding, "kind": one.kind, "share": one.share, "unit": unit}
                for one in run.findings
                for unit in dict.fromkeys(numbers[key] for key in one.units)
            ]
            if findings:
                connection.execute(sa.insert(FINDING), findings)
        return True

    def _numbers(self, connection: sa.Connection, run: RunRecord, *, adds: bool) -> dict[str, int]:
        """Return the number of each of the run's units; with `adds`, those that are new get one."""
        before = self._known(connection, [one.key for one in run.units])
        known = {key: row[0] for key, row in before.items()}
        # A hash never takes the place of a name: the hooks add without --show-addresses.
        own = run.units if adds else [one for one in run.units if one.key in before]
        units = with_names(own, {key: row[2] for key, row in before.items()})
        hosts = [one for one in units if not one.host_key]
        for group in (hosts, [one for one in units if one.host_key]):
            new = [
                {
                    "key": one.key, "name": one.name, "place": one.place, "host": known.get(one.host_key),
                    "first_s": run.captured_s, "last_s": run.captured_s, "physical": one.physical,
                }
                for one in group
                if one.key not in known
            ]  # fmt: skip
            if new:
                newest = connection.execute(sa.select(sa.func.max(UNIT.c.number))).scalar() or 0
                connection.execute(sa.insert(UNIT), new)
                added = sa.select(UNIT.c.key, UNIT.c.number).where(UNIT.c.number > newest)
                known |= {row[0]: row[1] for row in connection.execute(added)}
        self._rename(connection, [(one.name, before[one.key]) for one in hosts if one.key in before], run)
        # What was there before may have moved, or been renamed; only the newest run says where it is.
        for one in units:
            number, last_s, *was = before.get(one.key, (-1, float("inf")))
            now = [one.name, one.place, known.get(one.host_key), one.physical]
            if last_s <= run.captured_s and was != now:
                moved = dict(zip(("name", "place", "host", "physical"), now, strict=True))
                connection.execute(sa.update(UNIT).where(UNIT.c.number == number).values(moved))
        for some in _in_parts([row[0] for row in before.values()]):
            older = (UNIT.c.number.in_(some), UNIT.c.last_s < run.captured_s)
            connection.execute(sa.update(UNIT).where(*older).values(last_s=run.captured_s))
        return known

    @staticmethod
    def _rename(
        connection: sa.Connection, hosts: Iterable[tuple[str, Sequence[Any]]], run: RunRecord
    ) -> None:
        """Call hosts, and so their devices, as the newest run does; any name is better than a hash."""
        for name, (number, last_s, was, *_) in hosts:
            if name != was and (last_s <= run.captured_s or (is_hash(was) and not is_hash(name))):
                connection.execute(sa.update(UNIT).where(UNIT.c.number == number).values(name=name))
                of_devices = sa.func.replace(UNIT.c.name, f" of {was}", f" of {name}")
                connection.execute(sa.update(UNIT).where(UNIT.c.host == number).values(name=of_devices))

    @staticmethod
    def _known(connection: sa.Connection, keys: Sequence[str]) -> dict[str, Sequence[Any]]:
        """Return number, last seen, name, place, host and physical number of those units that there are."""
        one = UNIT.c
        columns = (one.number, one.last_s, one.name, one.place, one.host, one.physical, one.key)
        parts = (sa.select(*columns).where(one.key.in_(some)) for some in _in_parts(keys))
        return {row[-1]: row[:-1] for part in parts for row in connection.execute(part).all()}

    def units(self) -> dict[int, Unit]:
        """Return all devices and hosts by number."""
        columns = (UNIT.c.number, UNIT.c.key, UNIT.c.name, UNIT.c.place, UNIT.c.physical, UNIT.c.host)
        with self._reading() as connection:
            rows = connection.execute(sa.select(*columns, UNIT.c.first_s, UNIT.c.last_s)).all()
        keys = {row[0]: row[1] for row in rows}
        return {
            number: Unit(
                Known(key, name, place, keys.get(host, ""), physical),
                -1 if host is None else host,
                first_s,
                last_s,
            )
            for number, key, name, place, physical, host, first_s, last_s in rows
        }

    def runs(self) -> list[RunLine]:
        """Return the runs that count, in the order of their recording."""
        columns = [RUN.c[name] for name in RunLine.__dataclass_fields__]
        with self._reading() as connection:
            counting = sa.select(*columns).where(self._counts)
            rows = connection.execute(counting.order_by(RUN.c.captured_s, RUN.c.fingerprint))
            return [RunLine(*row) for row in rows]

    def metrics(self) -> list[str]:
        """Return the metrics that any run has, in order."""
        of_runs = sa.select(SERIES.c.metric).join(RUN, SERIES.c.run == RUN.c.number).where(self._counts)
        with self._reading() as connection:
            return sorted(connection.execute(of_runs.distinct()).scalars())

    def history(self, metric: str) -> History:
        """Return one metric of all runs that have it."""
        columns = (SERIES.c.run, SERIES.c.units, SERIES.c.amounts, SERIES.c.errors)
        wanted = SERIES.c.metric == metric
        with self._reading() as connection:
            first = connection.execute(sa.select(SERIES.c.run, sa.func.length(SERIES.c.units)).where(wanted))
            n_bytes = {row[0]: row[1] for row in first}
            rows = connection.execute(sa.select(*columns).where(wanted))
            lines = [line for line in self.runs() if line.number in n_bytes]
            lengths = [n_bytes[line.number] // NUMBERS.itemsize for line in lines]
            return history_of(metric, lines, lengths, rows)

    def sizes(self) -> dict[int, int]:
        """Return how many devices were measured in each run."""
        length = sa.func.length(SERIES.c.units)
        chosen = sa.select(SERIES.c.run, sa.func.max(length)).group_by(SERIES.c.run)
        with self._reading() as connection:
            return {row[0]: row[1] // NUMBERS.itemsize for row in connection.execute(chosen)}

    def costs(self) -> list[tuple[int, int, float]]:
        """Return run, unit and share of the step for each finding that names the unit."""
        with self._reading() as connection:
            chosen = sa.select(FINDING.c.run, FINDING.c.unit, FINDING.c.share)
            rows = connection.execute(chosen.order_by(FINDING.c.run, FINDING.c.unit))
            return [(row[0], row[1], row[2]) for row in rows]

    def records(self) -> Iterator[RunRecord]:
        """Give all runs as they were added, in the order of their recording."""
        units = self.units()
        with self._reading() as connection:
            for run in connection.execute(sa.select(RUN).order_by(RUN.c.captured_s, RUN.c.fingerprint)).all():
                series = connection.execute(sa.select(SERIES).where(SERIES.c.run == run.number)).all()
                found = connection.execute(sa.select(FINDING).where(FINDING.c.run == run.number)).all()
                by_finding: dict[str, NamedFinding] = {}
                for row in found:
                    before = by_finding.get(row.finding)
                    keys = (*(before.units if before else ()), units[row.unit].known.key)
                    by_finding[row.finding] = NamedFinding(row.finding, row.kind, row.share, keys)
                arrays = [series_of(row, units) for row in series]
                named = {key for one in arrays for key in one.keys} | {
                    k for f in by_finding.values() for k in f.units
                }
                own = [one.known for one in units.values() if one.known.key in named]
                hosts = {one.host_key for one in own}
                own += [one.known for one in units.values() if one.known.key in hosts - named]
                yield run_of(run, own, arrays, list(by_finding.values()))

    def forget(self, before_s: float) -> int:
        """Delete the runs recorded before a time, and units that no run is left of; return how many."""
        with self._writing() as connection:
            old = (
                connection.execute(sa.select(RUN.c.number).where(RUN.c.captured_s < before_s)).scalars().all()
            )
            for numbers in _in_parts(old):
                for table, column in ((SERIES, SERIES.c.run), (FINDING, FINDING.c.run), (RUN, RUN.c.number)):
                    connection.execute(sa.delete(table).where(column.in_(numbers)))
            connection.execute(sa.delete(UNIT).where(UNIT.c.last_s < before_s))
        return len(old)

    def note_action(self, **values: str | float) -> int:
        """Write down what is about to be done, or was; return its number."""
        with self._writing() as connection:
            row = connection.execute(sa.insert(ACTION).values(**values)).inserted_primary_key
            return int(row[0]) if row is not None else -1

    def change_action(self, number: int, **values: str | float) -> None:
        """Change what is written of one."""
        with self._writing() as connection:
            connection.execute(sa.update(ACTION).where(ACTION.c.number == number).values(**values))

    def actions(self) -> list[dict[str, Any]]:
        """Return all that was done, in order."""
        with self._reading() as connection:
            rows = connection.execute(sa.select(ACTION).order_by(ACTION.c.number))
            return [dict(row._mapping) for row in rows]

    def close(self) -> None:
        """Close it."""
        self._engine.dispose()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._errors(), self._engine.connect() as connection:
            writing = connection.execution_options(fleet_writes=True)
            with writing.begin():
                if not self._is_sqlite:
                    writing.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                yield writing

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            why = str(getattr(error, "orig", None) or error).splitlines()[0]
            other = "is its directory there?" if self._is_sqlite else f"does psql {self.name} reach it?"
            advice = f"is it a fleet's database, is there room, and may you write it? {other}"
            raise InputError(f"{self.name}: {why}", advice) from error

    def _bring_up_to_date(self) -> None:
        with self._engine.connect() as connection:
            is_there = sa.inspect(connection).has_table(VERSION.name)
            found = connection.execute(sa.select(VERSION.c.version)).scalar() if is_there else None
        if found == NEWEST:
            return
        with self._writing() as connection:
            VERSION.create(connection, checkfirst=True)
            found = connection.execute(sa.select(VERSION.c.version)).scalar() or 0
            if found > NEWEST:
                raise SchemaError(
                    f"{self.name}: version {found} found, {NEWEST} wanted", "update this program"
                )
            if found < NEWEST:
                migrate(connection)


def _url_of(text: str) -> sa.URL:
    with suppress(ValueError, sa.exc.ArgumentError):  # they quote a part of it, and it may hold a password
        url = sa.make_url(text)
        if "@" not in f"{url.host}{url.database}":  # else that is the end of a password
            return url
    raise InputError(
        "the URL of the database cannot be read",
        "postgresql://USER@HOST/DATABASE; in a password : is %3A, / is %2F, @ is %40",
    )


def _in_parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE))


def _begin_by_us(connection: Any, _record: Any) -> None:
    """SQLite's driver begins transactions late, so that two writers may both have read first.

    Its log is not written ahead, as older versions had it: that asks readers for the right to write, and
    all of them to be on one host.
    """
    connection.isolation_level = None
    with suppress(sqlite3.OperationalError):  # we may only read it, or it is in use: the next writer does it
        connection.execute("PRAGMA journal_mode=DELETE")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("fleet_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
