"""cluster-act by its command line: what it says, does, logs and undoes."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cluster_act.cli import main
from cluster_analysis.cli import main as analyse
from cluster_fleet.cli import main as remember
from cluster_fleet.store import Fleet
from cluster_run.errors import ExitCode
from tests.analysis.runs import write_small_run
from tests.commands import program
from tests.fleet.test_store import runs_of


@pytest.fixture(scope="module")
def thirty_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("thirty") / "fleet.db"
    with Fleet(where) as fleet:
        for one in runs_of(30):
            fleet.add(one)
    return where


@pytest.fixture
def db(tmp_path: Path, thirty_runs: Path) -> str:
    """A fleet of its own for a test, which may change it."""
    return str(shutil.copy(thirty_runs, tmp_path / "fleet.db"))


@pytest.fixture
def by_command(tmp_path: Path) -> list[str]:
    script = program(tmp_path / "act.sh", f'echo "$1 $CLUSTER_ACT_NODE" >> {tmp_path}/acted')
    return ["--way", "command", "--command", str(script)]


def test_nothing_is_done_unless_told_then_once_and_undone(
    db: str, tmp_path: Path, by_command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    act = ["--fleet", "--db", db, *by_command, "--exclude-file", str(tmp_path / "excluded")]
    acted, excluded = tmp_path / "acted", tmp_path / "excluded"
    assert main(act) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    for word in ("why: device 1 of node001: slow since", "cost: ", "do: ", "undo: ", "nothing was done"):
        assert word in said
    assert not acted.exists()
    assert main([*act, "--apply"]) == ExitCode.DONE
    assert main([*act, "--apply"]) == ExitCode.DONE
    assert "done already" in capsys.readouterr().out
    assert acted.read_text() == "apply node001\n"
    assert excluded.read_text() == "node001\n"
    undo = ["--undo", "node001", "--db", db, *by_command, "--exclude-file", str(excluded)]
    assert main(undo) == ExitCode.FINDINGS
    assert main([*undo, "--apply"]) == ExitCode.DONE
    assert main([*undo, "--apply"]) == ExitCode.DONE
    assert acted.read_text() == "apply node001\nundo node001\n"
    assert excluded.read_text() == ""
    assert main(["--log", "--db", db]) == ExitCode.DONE
    assert re.search(r" undone \S+Z: device 1 of node001: slow", capsys.readouterr().out)


def test_what_is_refused_spends_nothing_of_the_budget(tmp_path: Path) -> None:
    where, acted = str(tmp_path / "fleet.db"), tmp_path / "acted"
    with Fleet(where) as fleet:
        for one in runs_of(30):
            (compute,) = one.series
            slower = np.where(np.arange(40) == 20, compute.values + 0.05, compute.values)
            fleet.add(replace(one, series=[replace(compute, values=slower)]))
    script = program(
        tmp_path / "act.sh", f"[ $CLUSTER_ACT_NODE != node001 ] && echo $CLUSTER_ACT_NODE >> {acted}"
    )
    act = ["--fleet", "--db", where, "--way", "command", "--command", str(script), "--budget", "1", "--apply"]
    assert main(act) == ExitCode.INCOMPLETE
    assert acted.read_text() == "node005\n"


def test_nodes_have_the_names_of_those_who_are_told(db: str, tmp_path: Path, by_command: list[str]) -> None:
    act = ["--db", db, *by_command, "--apply", "--node-name", "{short}.site.example"]
    assert main(["--fleet", *act]) == ExitCode.DONE
    assert main(["--undo", "node001", *act]) == ExitCode.DONE
    assert (tmp_path / "acted").read_text() == "apply node001.site.example\nundo node001.site.example\n"
    with pytest.raises(SystemExit):
        main(["--fleet", *act, "--node-name", "node001"])


@pytest.mark.parametrize(("slower", "state"), [("11", "slow"), ("10", "not slow")])
def test_a_probe_is_remembered_and_decides_the_case(
    db: str,
    tmp_path: Path,
    by_command: list[str],
    slower: str,
    state: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reach = program(tmp_path / "reach", f"[ $1 = node001 ] && echo {slower} || echo 10")
    argv = ["--probe", "node001:1", "node002:1", "--ssh", str(reach), "--probe-command", "x"]
    assert main([*argv, "--seconds", "1", "--db", db]) in (ExitCode.FINDINGS, ExitCode.DONE)
    assert main(["--log", "--db", db]) == ExitCode.DONE
    assert f"probe node001 {state}: node001:1 against node002:1" in capsys.readouterr().out
    is_slow = state == "slow"
    act = ["--fleet", "--db", db, *by_command]
    assert main(act) == (ExitCode.FINDINGS if is_slow else ExitCode.DONE)
    assert ("a probe has cleared it" in capsys.readouterr().out) is not is_slow


def test_it_speaks_chinese_and_writes_down_english(
    db: str, by_command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    act = ["--fleet", "--db", db, *by_command, "--lang", "zh"]
    assert main(act) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    for word in ("原因：node001 的设备 1：自", "损失：迄今", "执行：", "撤销：", "尚未执行"):
        assert word in said
    assert "slow since" not in said
    assert main([*act, "--apply"]) == ExitCode.DONE
    assert main([*act, "--apply"]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "已执行：node001" in said
    assert "不处理 node001 的设备 1：已经处理过" in said
    assert main(["--undo", "all", "--db", db, *by_command, "--lang", "zh"]) == ExitCode.FINDINGS
    assert "尚未撤销" in capsys.readouterr().out
    assert main(["--log", "--db", db, "--lang", "zh"]) == ExitCode.DONE
    assert "done: device 1 of node001: slow since" in capsys.readouterr().out
    assert main(["--undo", "all", "--db", db, *by_command, "--lang", "zh", "--apply"]) == ExitCode.DONE
    assert capsys.readouterr().out.startswith("node001：已撤销：")


def test_clusterd_is_told_of_the_devices_of_the_log_though_the_fleet_has_forgotten_them(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECTL_STATE", str(tmp_path / "cluster.json"))
    monkeypatch.setenv("PATH", f"{Path(__file__).parent}:/usr/bin:/bin")
    way = ["--db", db, "--way", "mindcluster", "--sender", "CCAE", "--apply", "--lang", "zh"]
    assert main(["--fleet", *way]) == ExitCode.DONE
    with Fleet(db) as fleet:
        fleet.forget(1e9)
        assert fleet.units() == {}
    assert main(["--undo", "node001", *way]) == ExitCode.DONE
    (config_map,) = json.loads((tmp_path / "cluster.json").read_text())["maps"].values()
    (fault,) = json.loads(config_map["data"]["PublicFault"])["faults"]
    assert (fault["assertion"], fault["influence"][0]["deviceIds"]) == ("recover", [1])
    said = capsys.readouterr().out
    assert "已执行：已上报故障 cact-" in said
    assert "已撤销：已上报 cact-" in said


def test_what_fails_is_told_logged_and_tried_again(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    act = ["--fleet", "--db", db, "--way", "command", "--apply", "--command"]
    assert main([*act, "false"]) == ExitCode.INCOMPLETE
    assert "refused: false ended with 1" in capsys.readouterr().out
    assert main([*act, "true"]) == ExitCode.DONE


@pytest.mark.parametrize("end", ["exec sleep 60", "kill -9 $$"])
def test_what_was_begun_and_cut_off_counts_as_done_until_it_is_undone(
    db: str, tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cluster_act.ways.process.DEADLINE_S", 2.0)
    acted, excluded = tmp_path / "acted", tmp_path / "excluded"
    writes = f'echo "$1 $CLUSTER_ACT_NODE" >> {acted}'
    script = program(tmp_path / "act.sh", f"{writes}\n{end}")
    way = [
        "--db",
        db,
        "--way",
        "command",
        "--command",
        str(script),
        "--exclude-file",
        str(excluded),
        "--apply",
    ]
    assert main(["--fleet", *way]) == ExitCode.INCOMPLETE
    assert "it may have been done" in capsys.readouterr().out
    assert excluded.read_text() == "node001\n"
    with Fleet(db) as fleet:
        assert [one["state"] for one in fleet.actions()] == ["intended"]
    assert main(["--undo", "node001", *way]) == ExitCode.INCOMPLETE
    assert "it may have been undone" in capsys.readouterr().out
    program(tmp_path / "act.sh", writes)
    assert main(["--fleet", *way]) == ExitCode.DONE
    assert main(["--undo", "node001", *way]) == ExitCode.DONE
    # Done and noted twice, it is one thing, and undone once.
    assert acted.read_text().split("\n")[1:] == ["undo node001", "apply node001", "undo node001", ""]
    assert excluded.read_text() == ""


@pytest.mark.parametrize("line", ["", " ", "it's"])
def test_a_command_that_is_none_is_refused_before_anything_is_written_down(
    db: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ["--fleet", "--db", db, "--way", "command", "--command", line]
    assert main(way) == ExitCode.USAGE
    said = capsys.readouterr()
    assert "--command" in said.err
    assert not said.out
    with Fleet(db) as fleet:
        assert fleet.actions() == []


def test_an_unnamed_node_is_left_beside_others_that_are_acted_on(
    db: str, by_command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = Fleet(db)
    with hidden:
        for one in runs_of(30, seed=2):
            units = [
                replace(u, key=f"other-{u.key}", name=u.name.replace("node001", "host-0a1b2c3d"))
                for u in one.units
            ]
            host_of = {u.key: u.host_key and f"other-{u.host_key}" for u in one.units}
            units = [replace(u, host_key=host_of[u.key.removeprefix("other-")]) for u in units]
            (series,) = one.series
            series = replace(series, keys=[f"other-{key}" for key in series.keys])
            hidden.add(replace(one, fingerprint=f"o-{one.name}", units=units, series=[series], findings=[]))
    act = ["--fleet", "--db", db, *by_command]
    assert main(act) == ExitCode.FINDINGS
    assert main([*act, "--apply"]) == ExitCode.INCOMPLETE
    said = capsys.readouterr().out
    assert "nothing is done to device 1 of host-0a1b2c3d: the name of its node is not known" in said
    assert (tmp_path / "acted").read_text() == "apply node001\n"
    # All that can be done is: a timer that calls again is told so again.
    assert main(act) == ExitCode.INCOMPLETE


def test_an_empty_log_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(tmp_path / "new.db")
    Fleet(where).close()
    for language, said in (("en", "the log is empty"), ("zh", "日志为空")):
        assert main(["--log", "--db", where, "--lang", language]) == ExitCode.DONE
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith(said)


def test_one_run_is_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_small_run(tmp_path / "run")
    assert analyse([str(run), "-q", "--no-report", "--no-insight"]) == 0
    capsys.readouterr()
    # To name a slow device that nobody can reach is not to be done with it.
    assert main([str(run)]) == ExitCode.INCOMPLETE
    said = capsys.readouterr().out
    assert "nothing is done to device 3 of host-" in said
    # Whatever one run says: without the name of its node nobody can act on it.
    assert "the name of its node is not known" in said


def test_where_nothing_can_be_told_nobody_says_that_nothing_is_to_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, run = tmp_path / "fleet.db", write_small_run(tmp_path / "run")
    assert analyse([str(run), "-q", "--no-report", "--no-insight"]) == 0
    findings = run / "cluster_analysis_output" / "findings.json"
    document = json.loads(findings.read_text())
    findings.write_text(json.dumps({**document, "verdict": "unknown", "findings": []}))
    assert main([str(run), "--db", str(where)]) == ExitCode.FAILED
    assert "no such database" in capsys.readouterr().err
    where.touch()
    capsys.readouterr()
    assert main(["--fleet", "--db", str(where)]) == ExitCode.INCOMPLETE
    assert "this fleet has no run, so nothing can be said" in capsys.readouterr().out
    assert main([str(run)]) == ExitCode.INCOMPLETE
    assert "the run could not be judged" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"severity": "info"}, id="information"),
        pytest.param({"kind": "slow_nic", "ranks": [3, 7]}, id="a rail: one card of each host"),
    ],
)
def test_what_may_be_no_device_s_fault_is_no_reason_to_act(
    tmp_path: Path, said: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_small_run(tmp_path / "run")
    assert analyse([str(run), "-q", "--no-report", "--no-insight"]) == 0
    findings = run / "cluster_analysis_output" / "findings.json"
    document = json.loads(findings.read_text())
    changed = [{**one, **said} for one in document["findings"]]
    findings.write_text(json.dumps({**document, "findings": changed}))
    capsys.readouterr()
    assert main([str(run), "--unconfirmed"]) == ExitCode.DONE
    assert capsys.readouterr().out == "no device or host to act on\n"


def test_the_alarm_of_a_run_has_the_name_that_the_fleet_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, where = write_small_run(tmp_path / "run"), str(tmp_path / "fleet.db")
    assert analyse([str(run), "-q", "--no-report", "--no-insight"]) == 0
    assert remember(["add", str(run), "--db", where, "--show-addresses"]) == ExitCode.DONE
    capsys.readouterr()
    argv = [str(run), "--db", where, "--unconfirmed"]
    assert main(argv) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "host-" not in said
    assert "nodename=10." in said


@pytest.mark.parametrize("argv", [[], ["--fleet", "--log"], ["--fleet"]])
def test_wrong_usage_says_what_is_missing(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CLUSTER_FLEET", raising=False)
    assert main(argv) == ExitCode.USAGE
    assert capsys.readouterr().err
