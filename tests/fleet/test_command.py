"""cluster-fleet from analysed runs to what it tells, by its command line."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cluster_analysis.cli import main as analyse
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.run_header import run_command
from cluster_fleet.cli import main
from cluster_fleet.identity import hosts_of_run
from cluster_fleet.run_record import record_of
from cluster_fleet.store import Fleet
from cluster_run.errors import ExitCode, InputError
from cluster_run.facts import fact
from cluster_run.findings import ALARMS
from cluster_run.ids import HostId
from cluster_run.manifest import Chip, Hardware, Manifest, manifest_to_json, read_manifest
from cluster_words.notes import note as note_of
from tests.commands import ran
from tests.fleet.conftest import N_RUNS


@pytest.fixture(scope="module")
def with_all_runs(tmp_path_factory: pytest.TempPathFactory, runs: list[Path]) -> Path:
    where = tmp_path_factory.mktemp("all") / "fleet.db"
    for run in runs:
        assert main(["add", str(run), "--db", str(where), "--hours", "24", "-q"]) == ExitCode.DONE
    return where


@pytest.fixture
def db(tmp_path: Path, with_all_runs: Path) -> str:
    """A fleet of its own for a test, which may change it."""
    return str(shutil.copy(with_all_runs, tmp_path / "fleet.db"))


def test_a_device_that_is_slow_in_all_runs_is_named_by_its_host_and_number(
    db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--db", db, "--json"]) == ExitCode.FINDINGS
    status = json.loads(capsys.readouterr().out)
    (slow,) = [one for one in status["stories"] if one["state"] == "slow"]
    assert (slow["metric"], slow["is_born_slow"], slow["n_runs"]) == ("compute", True, 6)
    assert slow["low"] <= 0.08 <= slow["high"] + 0.005
    assert slow["name"].startswith("device 1 of host-")  # rank 5 of four a host
    assert slow["hours_lost"] > 0
    number, host = slow["name"].removeprefix("device ").split(" of ")
    for name in (slow["name"], f"{host}:{number}"):
        assert main(["show", name, "--db", db]) == ExitCode.FINDINGS
        assert "slow since its first job, " in capsys.readouterr().out


def test_runs_that_are_there_already_change_nothing(
    db: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["add", str(runs[2]), str(runs[1]), "--db", db]) == ExitCode.DONE
    assert capsys.readouterr().out.count("there already") == 2


def test_hosts_of_runs_that_are_there_get_the_names_of_their_rank_table_when_they_are_asked_for(
    db: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "device 1 of node17", "--db", db]) == ExitCode.FAILED
    assert "known are host-" in capsys.readouterr().err
    for run in runs:
        main(["add", str(run), "--db", db, "-q", "--show-addresses"])
    assert main(["show", "device 1 of 10.20.0.2", "--db", db]) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "device 1 of 10.20.0.2: slow since" in said
    assert "over 6 jobs" in said
    # What it cost is told once, though its links are told of, too.
    assert said.count("findings that name it cost") == 1
    assert said.count("10.20.0.2") > 1


def test_a_hash_never_takes_the_place_of_a_name_and_a_name_of_an_older_run_takes_that_of_a_hash(
    db: str, tmp_path: Path, runs: list[Path]
) -> None:
    def names() -> set[str]:
        with Fleet(db) as fleet:
            return {one.known.name.partition(" of ")[2] or one.known.name for one in fleet.units().values()}

    assert all(one.startswith("host-") for one in names())
    addresses = {f"10.20.0.{n}" for n in range(1, 5)}
    # The oldest run alone says the names; then the newest comes without them, as the hooks add it.
    assert main(["add", str(runs[0]), "--db", db, "-q", "--show-addresses"]) == ExitCode.DONE
    assert names() == addresses
    for run in runs:
        assert main(["add", str(run), "--db", db, "-q"]) == ExitCode.DONE
    assert names() == addresses
    # New devices of a known host, too.
    where = str(tmp_path / "new.db")
    record = record_of(runs[0], show_addresses=True)
    with Fleet(where) as fleet:
        fleet.add(
            replace(record, units=[one for one in record.units if not one.host_key], series=[], findings=[])
        )
        fleet.add(replace(record_of(runs[1])))
        assert any(one.known.name == "device 1 of 10.20.0.2" for one in fleet.units().values())


def test_page_and_metrics_name_the_slow_device_and_load_nothing(db: str, tmp_path: Path) -> None:
    page, metrics = tmp_path / "fleet.html", tmp_path / "fleet.prom"
    assert main(["status", "--db", db, "--page", str(page), "--metrics", str(metrics)]) == ExitCode.FINDINGS
    html = page.read_text()
    assert "Next maintenance" in html
    assert "slow since its first job, " in html
    assert "http" not in html.replace("http://www.w3.org", "")
    assert 'metric="compute",state="slow"} 0.0' in metrics.read_text()


def test_old_runs_are_forgotten_by_their_date(
    db: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    day = "2025-11-28"  # that after the simulated captures
    with pytest.raises(SystemExit):
        main(["forget", "--before", "28.11.2025", "--db", db])
    assert main(["forget", "--before", "2020-01-01", "--db", db]) == ExitCode.DONE
    assert main(["forget", "--before", day, "--db", db]) == ExitCode.DONE
    assert capsys.readouterr().out == f"0 runs forgotten\n{len(runs)} runs forgotten\n"
    assert main(["status", "--db", db]) == ExitCode.INCOMPLETE
    assert (
        capsys.readouterr().out == "this fleet has no run, so nothing can be said (cluster-fleet add RUN)\n"
    )


def test_an_emptied_fleet_is_no_healthy_one(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, page = tmp_path / "fleet.db", tmp_path / "fleet.html"
    where.touch()
    assert main(["status", "--db", str(where), "--page", str(page)]) == ExitCode.INCOMPLETE
    for said in (capsys.readouterr().out, page.read_text()):
        assert "nothing can be said" in said
        assert "no device or host is slow" not in said
        assert "1970" not in said
    asking = [str(runs[0]), "--no-output", "-q", "--json", "--fleet", str(where)]
    analyse(asking)
    notes = json.loads(capsys.readouterr().out)["note_facts"]
    assert "fleet_knows_none" in [one["kind"] for one in notes]
    # A run that compared nothing says of nobody that all is well.
    with Fleet(where) as fleet:
        fleet.add(replace(record_of(runs[0]), series=[], findings=[]))
    assert main(["status", "--db", str(where)]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "no device or host is slow, as far as can be told" in said
    assert "16 devices or hosts cannot be told yet" in said


@pytest.mark.parametrize("damaged", ["relative_to_peers", "ranks", "findings"])
def test_an_output_that_lacks_a_column_or_a_field_is_refused_with_what_to_do(
    runs: list[Path], tmp_path: Path, damaged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = shutil.copytree(runs[0] / "cluster_analysis_output", tmp_path / "out")
    if damaged == "findings":
        (results / "findings.json").write_text('{"schema": "cluster-findings/1"}')
    else:
        file = results / "tables" / f"{damaged}.parquet"
        table = pq.read_table(file)
        pq.write_table(table.drop_columns(["host"]), file)
    argv = ["add", str(runs[0]), "--results", str(results), "--db", str(tmp_path / "fleet.db")]
    assert main(argv) == ExitCode.FAILED
    assert "is missing, or is not what this version writes (cluster-analyse RUN" in capsys.readouterr().err


def test_nothing_named_and_nothing_known_are_told_apart(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(tmp_path / "one.db")
    main(["--db", where, "add", str(runs[0]), "-q"])
    assert main(["--db", "none", "status", "--db", where]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert re.search(r" in 1 run, \d{4}-\d\d-\d\d\n", said), "one day is no range"
    assert "no device or host is slow, as far as can be told" in said
    assert "20 devices or hosts cannot be told yet: 20 in too few runs, 0 between healthy and slow" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["status"], "no database is named"),
        (["status", "--db", "none.db"], "no such database"),
        (["--db", "none.db", "status"], "none.db: no such database"),
        (["add", ".", "--db", "x.db"], "cluster-analyse RUN writes it"),
        (["add", "a", "b", "--results", "c", "--db", "x.db"], "--results goes with a single RUN"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(
    argv: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLUSTER_FLEET", raising=False)
    assert main(argv) in (ExitCode.USAGE, ExitCode.FAILED)
    assert said in capsys.readouterr().err


def test_the_key_is_the_vdie_else_serial_else_place(tmp_path: Path, runs: list[Path]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("host_ips_mapping.txt", "manifest.json"):
        (run / name).write_bytes((runs[0] / name).read_bytes())
    manifest = read_manifest(run / "manifest.json")
    chips = (
        Chip(0, vdie="42C711D4 20B03704 4A10C8D4 14CC040A D2102003"),
        Chip(1, 1, 0, serial="S1", physical=6),
        Chip(2, pcie="p"),
    )
    hardware = Hardware("node017", "HS1", chips=chips)
    first = type(manifest.hosts[0])(
        **{**{n: getattr(manifest.hosts[0], n) for n in manifest.hosts[0].__dataclass_fields__},
           "hardware": {**asdict(hardware), "of_a_later_version": 1}}
    )  # fmt: skip
    changed = Manifest(manifest.what, (first, *manifest.hosts[1:]), manifest.tool_version)
    (run / "manifest.json").write_text(manifest_to_json(changed))
    places = hosts_of_run(run)
    assert places.hardware[HostId("1")] == hardware
    keys = [places.device(HostId("1"), number).key for number in range(4)]
    assert [places.device(HostId("1"), number).physical for number in (0, 1, 3)] == [None, 6, None]
    host = "host-serial:HS1"
    assert keys == [
        "vdie:42C711D420B037044A10C8D414CC040AD2102003", "serial:S1/0",
        f"place:{host}/p", f"place:{host}/device-3",
    ]  # fmt: skip
    assert places.hosts[HostId("1")].name == "node017"
    # An address is nobody's business unless asked for.
    assert "10." not in places.hosts[HostId("2")].name
    assert "10." in hosts_of_run(run, show_addresses=True).hosts[HostId("2")].name


@pytest.mark.parametrize(
    "manifest", ["[]", "{", '{"hosts": [{}]}', '{"hosts": [{"host": "1", "hardware": {"chips": 3}}]}']
)
def test_a_damaged_manifest_is_refused_by_its_name(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=r"manifest\.json: not a readable manifest"):
        hosts_of_run(tmp_path)


@pytest.mark.slow
def test_to_add_a_run_loads_no_pandas(tmp_path: Path, runs: list[Path]) -> None:
    script = (
        "import sys\n"
        "from cluster_fleet.cli import main\n"
        f"print(main(['add', {str(runs[0])!r}, '--db', 'fleet.db', '-q']), 'pandas' in sys.modules)\n"
    )
    assert ran([sys.executable, "-c", script], cwd=tmp_path, check=True).stdout == "0 False\n"


def test_a_run_without_a_mapping_is_known_by_the_serial_numbers_of_its_manifest(
    tmp_path: Path, runs: list[Path]
) -> None:
    with pytest.raises(InputError, match="host_ips_mapping") as refused:
        hosts_of_run(tmp_path)
    assert "in the order of the inventory" in refused.value.advice
    manifest = json.loads((runs[0] / "manifest.json").read_text())
    for number, host in enumerate(manifest["hosts"]):
        host["hardware"] = asdict(Hardware(f"node{number}", f"HS{number}"))
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    alone = hosts_of_run(tmp_path).hosts
    (tmp_path / "host_ips_mapping.txt").write_bytes((runs[0] / "host_ips_mapping.txt").read_bytes())
    assert alone == hosts_of_run(tmp_path).hosts
    assert {one.name for one in alone.values()} == {f"node{n}" for n in range(len(manifest["hosts"]))}


def test_a_capture_is_the_same_one_however_often_it_is_read(runs: list[Path]) -> None:
    assert record_of(runs[0]).fingerprint == record_of(runs[0]).fingerprint
    assert len({record_of(run).fingerprint for run in runs}) == len(runs)


@pytest.mark.parametrize(
    ("said", "units"),
    [
        pytest.param({"kind": "slow_nic", "ranks": [4, 5], "hosts": ["2"]}, ["2:0", "2:1"], id="a card"),
        pytest.param({"kind": "slow_nic", "ranks": [1, 5, 9], "hosts": ["1", "2", "3"]}, [], id="a rail"),
        pytest.param({"kind": "slow_link", "ranks": [3, 4], "hosts": ["1", "2"]}, [], id="a link"),
        pytest.param({"kind": "slow_uplink", "ranks": [], "hosts": ["2"]}, ["2"], id="a host's uplink"),
        pytest.param({"kind": "slow_host_pair", "ranks": [], "hosts": ["2", "3"]}, [], id="a pair of hosts"),
        pytest.param({"kind": "slow_host", "ranks": [4, 5, 6, 7], "hosts": ["2"]}, ["2"], id="a host"),
        pytest.param({"kind": "slow_host", "ranks": [*range(12)], "hosts": ["1", "2", "3"]}, [], id="alike"),
        pytest.param({"kind": "slow_nic", "ranks": [5, 99], "hosts": ["2"]}, [], id="one of an unknown host"),
    ],
)
def test_a_finding_costs_the_units_that_it_names_in_one_host_and_none_of_those_that_share_it(
    runs: list[Path], tmp_path: Path, said: dict[str, object], units: list[str]
) -> None:
    results = shutil.copytree(runs[0] / "cluster_analysis_output", tmp_path / "out")
    document = json.loads((results / "findings.json").read_text())
    (alarm,) = [one for one in document["findings"] if one["severity"] in ALARMS]
    (results / "findings.json").write_text(json.dumps({**document, "findings": [{**alarm, **said}]}))
    (finding,) = record_of(runs[0], results).findings
    places = hosts_of_run(runs[0])
    names = {places.hosts[HostId(f"{host}")].key: f"{host}" for host in range(1, 5)}
    names |= {
        places.device(HostId(f"{host}"), number).key: f"{host}:{number}"
        for host in range(1, 5)
        for number in range(4)
    }
    assert [names[one] for one in finding.units] == units


@pytest.mark.slow
def test_a_finding_quotes_what_the_fleet_knows_of_whom_it_names(
    db: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(runs[1]), "-q", "--no-output", "--fleet", db]
    assert analyse([*argv, "--json"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    (alarm,) = [one for one in document["findings"] if one["severity"] != "info"]
    (quoted,) = [one for one in alarm["facts"] if one["kind"] == "fleet_slow"]
    # The run itself is in the fleet, and is no witness in its own case.
    assert (quoted["unit"], quoted["n_runs"]) == ("device 1 of host 2", N_RUNS - 1)
    assert quoted["low"] <= 0.08 <= quoted["high"] + 0.005
    for language, said, named in (
        ("en", "By the fleet, device 1 of host 2:", "By the fleet, device 1 of 10.20.0.2:"),
        ("zh", "据机群记录，主机 2 的设备 1：", "据机群记录，10.20.0.2 的设备 1："),
    ):
        # The fleet knows the names of hosts; a report names them only where it is asked to.
        for run in runs:
            main(["add", str(run), "--db", db, "-q", "--show-addresses"])
        for more, shown in (((), said), (("--show-addresses",), named)):
            assert analyse([*argv, "--lang", language, *more]) == ExitCode.DONE
            # A line may end at any space, and one of Chinese at any character.
            assert "".join(shown.split()) in "".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_run_is_judged_as_ever_where_the_fleet_knows_nothing_or_cannot_be_asked(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(runs[1]), "-q", "--no-output", "--json"]
    analyse(argv)
    alone = json.loads(capsys.readouterr().out)
    empty = tmp_path / "empty.db"
    Fleet(empty).close()
    analyse([*argv, "--fleet", str(empty)])
    asked = json.loads(capsys.readouterr().out)
    assert asked["run"].pop("command") != alone["run"].pop("command")
    assert asked.pop("note_facts") == [*alone["note_facts"], {"kind": "fleet_knows_none"}]
    assert len(asked.pop("notes")) == 1 + len(alone["notes"])
    assert asked == {name: value for name, value in alone.items() if name not in ("notes", "note_facts")}
    analyse([*argv, "--fleet", str(tmp_path / "none.db")])
    refused = json.loads(capsys.readouterr().out)
    assert refused["findings"] == alone["findings"]
    (note,) = set(refused["notes"]) - set(alone["notes"])
    assert note.startswith("the fleet was not asked")
    assert "no such database" in note
    (said,) = [one for one in refused["note_facts"] if one["kind"] == "fleet_not_asked"]
    assert "没有该数据库" in note_of(fact(said.pop("kind"), **said)).zh


def test_no_password_of_the_fleet_stands_in_the_command_that_findings_quote(tmp_path: Path) -> None:
    options = AnalyseOptions(run=tmp_path, fleet="postgresql://me:secret@host/fleet")
    assert run_command(options).endswith("--fleet postgresql://me@host/fleet")


def test_the_page_and_the_terminal_speak_chinese(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "fleet.html"
    assert main(["status", "--db", db, "--page", str(page), "--lang", "zh"]) == ExitCode.FINDINGS
    for text in (capsys.readouterr().out, page.read_text()):
        assert "（首个作业）起变慢" in text
        assert not re.search("[一-鿿][.:;]", text), "an English mark behind Chinese"
        assert "slow since" not in text


def test_export_import_and_forget_say_what_they_did_in_the_language_that_is_asked_for(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "fleet.gz")
    for language, said in (
        ("en", f"6 runs in {file}\n0 runs added, 6 were there already\n0 runs forgotten\n"),
        ("zh", f"{file} 中有 6 次运行\n已加入 0 次运行，另有 6 次此前已加入\n已删除 0 次运行\n"),
    ):
        for argv in (["export", file], ["import", file], ["forget", "--before", "2020-01-01"]):
            assert main([*argv, "--db", db, "--lang", language]) == ExitCode.DONE
        assert capsys.readouterr().out == said
