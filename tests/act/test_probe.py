"""The paired probe: settled by the ratio, over real commands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cluster_act.cli import main
from cluster_act.probe import compared, place, probed
from cluster_run.errors import ExitCode, UsageError
from tests.commands import program


@pytest.mark.parametrize(("slower", "is_slow"), [(1.06, True), (1.0, False)])
def test_a_suspect_is_settled_though_both_drift(slower: float, is_slow: bool) -> None:
    chance, at = random.Random(3), [0]

    def timed(where: str) -> float:
        at[0] += 1
        return (1 + 0.01 * at[0]) * chance.lognormvariate(0, 0.004) * (slower if where == "a:1" else 1.0)

    found = probed("a:1", "b:1", timed, seconds=0.2)
    assert (found.is_slow, found.is_settled) == (is_slow, True)
    assert found.low <= slower - 1 <= found.high


def test_a_noisy_probe_stays_open() -> None:
    assert not compared([0.1, -0.12, 0.2, -0.05, 0.15]).is_settled


@pytest.mark.parametrize("text", ["node017", "node017:x", "-o:1", ":1"])
def test_what_is_no_device_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        place(text)


def test_the_command_runs_the_site_s_work_on_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reach = program(tmp_path / "reach", 'node=$1; shift\nNODE=$node exec sh -c "$*"')
    work = "[ $NODE = node1 ] && echo device {device}: 10.6 || echo 10.0"
    argv = ["--probe", "node1:5", "node2:3", "--ssh", str(reach), "--probe-command", work, "--seconds", "1"]
    assert main(argv) == ExitCode.FINDINGS
    assert "+6.0 %" in capsys.readouterr().out
    argv[argv.index(work)] = "echo none"
    assert main(argv) == ExitCode.FAILED
    assert "printed no time" in capsys.readouterr().err
