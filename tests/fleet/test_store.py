"""The fleet's database: whole or not at all, once, by several writers, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from cluster_analysis.describe.relative_to_peers import counted
from cluster_fleet.cli import main
from cluster_fleet.exchange import export, exported
from cluster_fleet.identity import Known
from cluster_fleet.metrics import metrics_text
from cluster_fleet.prior import probably_slow
from cluster_fleet.records import NamedFinding, RunRecord, Series
from cluster_fleet.status import named, status_of
from cluster_fleet.store import Fleet
from cluster_fleet.story import sentence
from cluster_fleet.tables import FINDING, RUN, SERIES, UNIT, VERSION
from cluster_run.errors import ExitCode, InputError, SchemaError
from tests.fleet.simulated import simulate
from tests.hook.public_python import NOBODY, public_directory

DAY_S = 86400.0


def record(number: int, values: np.ndarray, *, day: float = 0.0, hours: float = 2.0) -> RunRecord:
    """A run on all devices of some hosts, four each."""
    hosts = [Known(f"host:{one}", f"node{one:03}", f"host:{one}") for one in range(len(values) // 4)]
    devices = [
        Known(f"vdie:{at}", f"device {at % 4} of {hosts[at // 4].name}", f"{at}", hosts[at // 4].key)
        for at in range(len(values))
    ]
    keys = [one.key for one in devices]
    return RunRecord(
        f"capture-{number}", f"run{number}", day * DAY_S, hours, 500.0, "degraded", {"cann": "8.2"},
        [*hosts, *devices], [Series("compute", keys, values, np.full(len(values), 0.002))],
        [NamedFinding("slow_rank-5", "slow_rank", 0.05, ("vdie:5",))],
    )  # fmt: skip


def runs_of(n_runs: int, seed: int = 1) -> list[RunRecord]:
    chance = np.random.default_rng(seed)
    values = chance.normal(0, 0.004, (n_runs, 40))
    values[n_runs // 2 :, 5] += 0.08
    return [record(at, values[at], day=float(at)) for at in range(n_runs)]


def test_a_device_that_turned_slow_is_told_with_its_date_and_what_it_cost(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            assert fleet.add(one)
        (story,) = status_of(fleet).stories
    assert (story.name, story.state, story.is_born_slow) == ("device 1 of node001", "slow", False)
    assert story.since_s == pytest.approx(15 * DAY_S, abs=DAY_S)
    assert story.low < np.expm1(0.08) < story.high
    assert story.hours_lost == pytest.approx(30 * 0.05 * 2 * 40)


def test_a_slow_device_whose_clock_is_lower_is_told_with_that_and_another_without(tmp_path: Path) -> None:
    lower = np.zeros(40)
    lower[5] = 0.07
    for name, clock in (("low.db", lower), ("as_others.db", np.zeros(40))):
        with Fleet(tmp_path / name) as fleet:
            for one in runs_of(30):
                (compute,) = one.series
                more = Series("clock", compute.keys, clock, np.full(40, np.nan))
                fleet.add(replace(one, series=[compute, more]))
            # The clock explains and accuses nobody: there is one story.
            (story,) = status_of(fleet).stories
        assert story.by_clock is (name == "low.db")
        assert ("its clock is lower as well" in sentence(story, "en")) is story.by_clock


def test_a_run_that_does_not_count_is_in_no_sum_count_mean_or_sentence(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    lower = np.where(np.arange(40) == 5, 1.0, 0.0)
    *others, judged = runs_of(30)
    (compute,) = judged.series
    explains = [
        Series(name, compute.keys, lower, compute.errors)
        for name in ("clock", "counter:roce_resent_packets_count")
    ]
    with Fleet(where) as fleet:
        for one in others:
            fleet.add(one)
        before = [replace(one, last_s=0.0) for one in status_of(fleet).stories]
        fleet.add(replace(judged, series=[compute, *explains]))
    assert before[0].n_named == 29
    with Fleet(where, without=judged.fingerprint) as fleet:
        status = status_of(fleet)
        assert (status.n_runs, status.end_s) == (29, 28 * DAY_S)
        assert [replace(one, last_s=0.0) for one in status.stories] == before


def test_a_host_that_launches_late_is_told_as_a_host(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            late = chance.normal(0, 0.003, 10)
            late[7] += 0.05
            keys = [f"host:{at}" for at in range(10)]
            fleet.add(replace(one, series=[Series("dispatch", keys, late, np.full(10, 0.002))]))
        (story,) = status_of(fleet).stories
    assert (story.name, story.host, story.metric, story.state) == ("node007", "node007", "dispatch", "slow")
    assert story.low < 0.05 < story.high


def test_what_is_shown_of_a_device_names_its_host_where_that_is_slow(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    with Fleet(tmp_path / "fleet.db") as fleet:
        for day in range(12):
            values = chance.normal(0, 0.004, 40)
            values[20:24] += 0.06
            fleet.add(record(day, values, day=float(day)))
        shown = {name: status_of(fleet, named(name)).stories for name in ("node005:3", "node004:3")}
    states = {name: [(one.name, one.state) for one in stories] for name, stories in shown.items()}
    assert states["node005:3"] == [("node005", "slow"), ("device 3 of node005", "healthy")]
    assert states["node004:3"] == [("device 3 of node004", "healthy")]


def test_a_device_that_no_run_compared_is_shown_as_one_that_cannot_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        fleet.add(replace(record(0, np.zeros(40)), series=[]))
    assert main(["show", "node003:1", "--db", str(tmp_path / "fleet.db")]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert (
        "  nothing of this is slow, as far as can be told\n  1 device or host cannot be told yet: 1 in"
        in said
    )
    assert main(["show", "node011:1", "--db", str(tmp_path / "fleet.db")]) == ExitCode.FAILED


def test_what_is_shown_of_a_healthy_device_says_nothing_of_others_that_are_slow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            fleet.add(one)
    assert main(["show", "node003:1", "--db", str(tmp_path / "fleet.db")]) == ExitCode.DONE
    assert capsys.readouterr().out.endswith(" over 30 jobs\n  nothing of this is slow\n")


def test_a_host_whose_devices_are_slow_again_and_again_is_told_as_such(tmp_path: Path) -> None:
    chance = np.random.default_rng(6)
    with Fleet(tmp_path / "fleet.db") as fleet:
        for day in range(60):
            values = chance.normal(0, 0.004, 40)
            # One of node001 until it is repaired, then its neighbour; one of node004 all the time.
            values[5 if day < 25 else 6] += 0.08
            values[16] += 0.08
            fleet.add(record(day, values, day=float(day)))
        status = status_of(fleet)
    assert dict(status.repeat_hosts) == {"node001": 2}
    states = {one.name: one.state for one in status.stories}
    assert states["device 1 of node001"] == "repaired"
    assert states["device 2 of node001"] == states["device 0 of node004"] == "slow"


def test_a_device_that_no_finding_names_is_told_without_a_count_of_none(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            fleet.add(replace(one, findings=[]))
        (story,) = status_of(fleet).stories
    assert story.n_named == 0
    for language, word in (("en", "up to the newest run"), ("zh", "指出它")):
        assert word not in sentence(story, language)
        assert word in sentence(replace(story, n_named=2), language)


def test_a_link_that_is_slow_over_many_runs_is_told_with_what_its_card_counts(tmp_path: Path) -> None:
    resent = np.r_[np.zeros(39), 300.0]
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            (compute,) = one.series
            slower = np.r_[np.random.default_rng(int(one.captured_s)).normal(0, 0.03, 39), 0.5]
            more = [
                Series("link:RDMA", compute.keys, slower, compute.errors),
                Series("counter:roce_resent_packets_count", compute.keys, resent, compute.errors),
            ]
            fleet.add(replace(one, series=[compute, *more]))
        (story,) = [one for one in status_of(fleet).stories if one.metric == "link:RDMA"]
    assert (story.name, story.state) == ("device 3 of node009", "slow")
    assert story.counters == ("roce_resent_packets_count",)
    assert "time on RDMA links" in sentence(story, "en")
    assert "; more packets sent again than nine in ten devices" in sentence(story, "en")
    assert "；重传报文比九成设备多" in sentence(story, "zh")


def test_what_a_unit_cost_is_one_metric_however_many_say_that_it_is_slow(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            (compute,) = one.series
            slower = np.r_[np.zeros(5), 0.5, np.zeros(34)]
            slower += np.random.default_rng(int(one.captured_s)).normal(0, 0.03, 40)
            links = Series("link:RDMA", compute.keys, slower, compute.errors)
            fleet.add(replace(one, series=[compute, links]))
        status = status_of(fleet)
    assert {(one.key, one.metric) for one in status.stories} == {
        ("vdie:5", "compute"),
        ("vdie:5", "link:RDMA"),
    }
    lines = metrics_text(status).splitlines()
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert sum("slow_ratio{" in line for line in series) == 2
    assert [line for line in lines if "lost_device_hours{" in line] == [
        'cluster_fleet_lost_device_hours{key="vdie:5",unit="device 1 of node001",host="node001"} 120'
    ]


def test_counters_of_a_run_s_cards_are_measured_by_rank_whatever_their_labels() -> None:
    rows = [(rank, "roce_resent_packets_count", port, 10.0 * rank) for rank in range(4) for port in "ab"]
    columns = dict(zip(("rank", "metric", "label", "value"), zip(*rows, strict=True), strict=True))
    counters = pa.table({name: pa.array(column) for name, column in columns.items()})
    (found,) = counted(counters)
    assert found.metric == "counter:roce_resent_packets_count"
    assert found.values.tolist() == [0.0, 20.0, 40.0, 60.0]


def test_the_same_run_twice_counts_once(tmp_path: Path) -> None:
    (one,) = runs_of(1)
    with Fleet(tmp_path / "fleet.db") as fleet:
        assert [fleet.add(one), fleet.add(one)] == [True, False]
        assert len(fleet.runs()) == 1


@pytest.mark.slow
def test_sqlite_and_postgresql_give_the_same_answers(tmp_path: Path, postgresql: str) -> None:
    answers = []
    for where in (str(tmp_path / "fleet.db"), postgresql):
        with Fleet(where) as fleet:
            for one in runs_of(20):
                assert fleet.add(one)
            assert not fleet.add(runs_of(20)[3])
            export(fleet.records(), tmp_path / "one.gz", salt="s")
            answers.append((status_of(fleet).plain(), (tmp_path / "one.gz").read_bytes()))
            fleet.forget(10 * DAY_S)
            answers[-1] += (status_of(fleet, named("vdie:5")).plain(), [one.name for one in fleet.runs()])
    assert answers[0] == answers[1]
    assert len(answers[0][3]) == 10


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://fleet:hunter2@127.0.0.1:1/none",
        "postgresql://fleet@127.0.0.1:1/none?password=hunter2",
        # As people write them who do not know that these signs have a meaning there.
        "postgresql://fleet:a@hunter2/b@127.0.0.1:1/none",
        "postgresql://fleet:a/hunter2@127.0.0.1:1/none",
        "postgresql://fleet:a@b:hunter2@127.0.0.1:1/none",
    ],
)
def test_a_password_is_in_no_message(where: str) -> None:
    with pytest.raises(InputError) as error:
        Fleet(where)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("mysql://me@host/fleet", "a file, or postgresql://USER@HOST/DATABASE with"),
        ("postgresql://me@127.0.0.1:1/fleet", "does psql postgresql://me@127.0.0.1:1/fleet reach it?"),
        ("postgresql://me@host:port/fleet", "the URL of the database cannot be read"),
        ("none/fleet.db", "is its directory there?"),
        (".", "is it a fleet's database"),
    ],
)
def test_a_database_that_cannot_be_opened_says_what_to_do(
    where: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        Fleet(where)
    assert said in str(error.value)


_WRITER = """
import sys
import tests.fleet.test_store as one
from cluster_fleet.store import Fleet
with Fleet(sys.argv[1]) as fleet:
    for run in one.runs_of(int(sys.argv[2]), seed=int(sys.argv[3])):
        fleet.add(one.replace(run, fingerprint=f"{sys.argv[3]}-{run.fingerprint}"))
        print(run.name, flush=True)
"""


def writer(where: Path, n_runs: int, seed: int) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", _WRITER.replace("one.replace", "__import__('dataclasses').replace")]
    return subprocess.Popen(
        [*argv, str(where), str(n_runs), str(seed)], stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip


@pytest.mark.slow
def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    writers = [writer(where, 25, seed) for seed in (1, 2)]
    for one in writers:
        one.communicate(timeout=150)
        assert one.returncode == 0
    with Fleet(where) as fleet:
        assert len(fleet.runs()) == 50
        assert len(fleet.units()) == 50  # 40 devices and 10 hosts, each once
        assert len(fleet.history("compute").samples.values) == 50 * 40


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_runs_and_all_that_it_told(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    one = writer(where, 1_000, 1)
    assert one.stdout is not None
    told = [one.stdout.readline().strip() for _ in range(8)]
    one.send_signal(signal.SIGKILL)
    told += one.stdout.read().split()
    one.wait(timeout=150)
    one.stdout.close()
    with Fleet(where) as fleet:
        kept = [run.name for run in fleet.runs()]
        assert kept[: len(told)] == told
        history = fleet.history("compute")
        assert len(history.samples.values) == 40 * len(history.runs)
        assert len(history.runs) == len(kept)
        assert fleet.add(record(999_999, np.zeros(40)))
    assert sqlite3.connect(where).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def readers_end(work: Callable[[], object]) -> int:
    """Do it as somebody who is not root; return how the process ended."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("is_older", [False, True])
def test_who_may_only_read_the_database_is_told_all_the_same(is_older: bool) -> None:
    with public_directory() as root:
        file = root / "fleet.db"
        with Fleet(file) as fleet:
            fleet.add(runs_of(1)[0])
        if is_older:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
            with Fleet(file):
                pass  # any call of somebody who may write brings it up to date
        file.chmod(0o444)
        root.chmod(0o555)
        assert readers_end(lambda: Fleet(file).runs()) == 0
        assert readers_end(lambda: Fleet(file).add(runs_of(2)[1])) == 1
        root.chmod(0o755)


#: Columns of tables that the first version had; a column that is added later is none of these.
IN_VERSION_1 = {
    "number", "key", "name", "place", "host", "first_s", "last_s", "fingerprint", "captured_s", "hours",
    "step_ms", "verdict", "versions", "run", "metric", "units", "amounts", "errors", "finding", "kind",
    "share", "unit",
}  # fmt: skip


def test_a_run_is_stored_with_all_that_its_record_holds() -> None:
    apart = {"units", "series", "findings"}
    assert {one.name for one in RUN.columns if one is not RUN.c.number} == set(
        RunRecord.__dataclass_fields__
    ) - apart


def test_an_older_database_is_brought_up_to_date_and_keeps_its_runs(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    engine = sa.create_engine(f"sqlite:///{where}")
    first = (UNIT, RUN, SERIES, FINDING)
    with engine.begin() as connection:
        for table in (VERSION, *first):
            table.create(connection)
        for column in (one for table in first for one in table.columns if one.name not in IN_VERSION_1):
            connection.execute(sa.text(f"ALTER TABLE {column.table.name} DROP COLUMN {column.name}"))
        connection.execute(sa.insert(VERSION).values(version=1))
        connection.execute(sa.text("INSERT INTO run VALUES (1, 'f', 'old', 0.0, 1.0, 5.0, 'healthy', '{}')"))
    engine.dispose()
    with Fleet(where) as fleet:
        assert [run.name for run in fleet.runs()] == [run.name for run in fleet.records()] == ["old"]
        assert fleet.actions() == []
        device = Known("vdie:1", "device 0 of n", "p", physical=4)
        fleet.add(replace(record(1, np.zeros(4)), units=[device], series=[], findings=[]))
        assert [one.known for one in fleet.units().values()] == [device]


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    Fleet(where).close()
    with sqlite3.connect(where) as connection:
        connection.execute("UPDATE fleet_version SET version = 99")
    connection.close()
    with pytest.raises(SchemaError, match="version 99 found"):
        Fleet(where)


def test_what_is_no_database_is_an_error_with_its_name(tmp_path: Path) -> None:
    where = tmp_path / "fleet.db"
    where.write_text("no database at all, but long enough to be read as one" * 50)
    with pytest.raises(InputError, match=r"fleet\.db"):
        Fleet(where)
    with pytest.raises(InputError, match="no such database"):
        Fleet(tmp_path / "none.db", must_exist=True)


def test_what_is_forgotten_leaves_no_trace_and_the_rest_is_judged_as_if_it_had_never_been(
    tmp_path: Path,
) -> None:
    gone = Known("vdie:gone", "device 9 of node000", "p9", "host:0")
    with Fleet(tmp_path / "all.db") as fleet, Fleet(tmp_path / "late.db") as late:
        for at, one in enumerate(runs_of(30)):
            fleet.add(replace(one, units=[*one.units, gone]) if at < 12 else one)
            if at >= 12:
                late.add(one)
        number = fleet.note_action(
            at_s=1.0, way="slurm", node="node000", unit=gone.key, reason="r", token="t", state="done"
        )
        assert fleet.forget(12 * DAY_S) == 12
        assert fleet.forget(12 * DAY_S) == 0
        assert [run.name for run in fleet.runs()] == [f"run{at}" for at in range(12, 30)]
        assert {one.known.key for one in fleet.units().values()} == {
            one.known.key for one in late.units().values()
        }
        assert len(fleet.costs()) == len(late.costs()) == 18
        assert status_of(fleet).plain() == status_of(late).plain()
        # What was done about it is still there to be undone.
        assert [one["number"] for one in fleet.actions()] == [number]
        # A forgotten run may come back, by an import for example.
        assert fleet.add(runs_of(30)[3])


@pytest.mark.slow
@pytest.mark.parametrize("salt", ["", "secret"])
def test_a_run_counts_once_though_an_export_of_the_fleet_itself_brings_it_again(
    tmp_path: Path, salt: str
) -> None:
    with Fleet(tmp_path / "a.db") as fleet:
        for one in runs_of(4):
            fleet.add(one)
        before = status_of(fleet).plain()
        export(fleet.records(), tmp_path / "export.gz", salt)
        assert [fleet.add(one) for one in exported(tmp_path / "export.gz")] == [False] * 4
        assert status_of(fleet).plain() == before


def test_an_export_comes_back_whole_and_an_anonymous_one_names_nobody(tmp_path: Path) -> None:
    file = tmp_path / "export.gz"
    with (
        Fleet(tmp_path / "a.db") as fleet,
        Fleet(tmp_path / "b.db") as other,
        Fleet(tmp_path / "c.db") as third,
    ):
        for one in runs_of(12):
            fleet.add(one)
        assert export(fleet.records(), file, salt="") == 12
        assert [other.add(one) for one in exported(file)] == [True] * 12
        assert status_of(other).plain() == status_of(fleet).plain()
        export(fleet.records(), file, salt="secret")
        for one in exported(file):
            third.add(one)
        (mine,), (theirs,) = status_of(fleet).stories, status_of(third).stories
        assert (mine.since_s, mine.n_runs) == (theirs.since_s, theirs.n_runs)
        assert theirs.level == pytest.approx(mine.level, rel=1e-6)
        assert not any(
            "node" in unit.known.name or "vdie" in unit.known.key for unit in third.units().values()
        )
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match="not a whole export"):
        list(exported(file))


@pytest.mark.parametrize(
    ("unit", "found", "is_slow", "said"),
    [
        ("node001:1", "not slow", False, "as fast as its control"),
        ("node001:1", "open", True, ""),
        ("node002:0", "slow", True, "found it slow"),
    ],
)
def test_a_probe_of_the_last_week_settles_what_jobs_say(
    unit: str, found: str, is_slow: bool, said: str, tmp_path: Path
) -> None:
    host, _, number = unit.partition(":")
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            fleet.add(one)

        def probed(at_s: float) -> None:
            fleet.note_action(
                at_s=at_s, way="probe", node=host, unit=unit, reason="", token="", state=found
            )  # fmt: skip

        before = status_of(fleet).plain()
        probed(time.time() - 8 * DAY_S)
        assert status_of(fleet).plain() == before
        probed(time.time())
        name = f"device {number} of {host}"
        for status in (status_of(fleet), status_of(fleet, named(name))):
            (story,) = [one for one in status.stories if one.name == name]
            assert story.is_slow is is_slow
            assert said in sentence(story, "en")
            assert ("探测" in sentence(story, "zh")) is bool(said)
            p_slow = probably_slow(story)
            assert p_slow is not None
            assert (p_slow > 0.5) is is_slow


def test_a_device_of_another_number_in_the_same_place_begins_anew(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(20):
            fleet.add(one)
        values = np.random.default_rng(5).normal(0, 0.004, (10, 40))
        for at in range(10):
            run = record(100 + at, values[at], day=30.0 + at)
            units = [
                Known("vdie:new", u.name, u.place, u.host_key) if u.key == "vdie:5" else u for u in run.units
            ]
            series = [Series("compute", [u.key for u in units[10:]], values[at], np.full(40, np.nan))]
            fleet.add(RunRecord(**{**vars(run), "units": units, "series": series, "findings": []}))
        states = {one.key: one.state for one in status_of(fleet, named("device 1 of node001")).stories}
        assert states == {"vdie:5": "replaced", "vdie:new": "healthy"}
        (exchanged,) = [one for one in status_of(fleet).stories if one.key == "vdie:5"]
        assert (exchanged.since_s, exchanged.is_slow) == (30.0 * DAY_S, False)


def elsewhere(run: RunRecord) -> RunRecord:
    """The same run on other machines, which are called the same."""
    others = [
        Known(f"other-{u.key}", u.name, f"other-{u.place}", u.host_key and f"other-{u.host_key}")
        for u in run.units
    ]
    series = [replace(one, keys=[f"other-{key}" for key in one.keys]) for one in run.series]
    return replace(run, fingerprint=f"other-{run.fingerprint}", units=others, series=series, findings=[])


def test_the_name_of_a_slow_host_that_was_exchanged_is_another_s(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(20):
            fleet.add(one)
        assert [one.state for one in status_of(fleet).stories] == ["slow"]
        healthy = np.random.default_rng(5).normal(0, 0.004, (10, 40))
        for at in range(10):
            fleet.add(elsewhere(record(100 + at, healthy[at], day=30.0 + at)))
        (story,) = status_of(fleet).stories
        assert (story.key, story.state, story.since_s) == ("vdie:5", "replaced", 30.0 * DAY_S)


def test_the_generator_and_the_store_agree_on_places(tmp_path: Path) -> None:
    simulated = simulate(3, n_jobs=10, n_hosts=10, n_devices=4)
    with Fleet(tmp_path / "fleet.db") as fleet:
        for job in range(10):
            values = np.where(np.isfinite(simulated.values[job]), simulated.values[job], 0.0)
            fleet.add(record(job, values, day=float(simulated.days[job])))
        history = fleet.history("compute")
    assert [run.name for run in history.runs] == [f"run{job}" for job in range(10)]
