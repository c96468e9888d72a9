"""The drain by cron, for sites without systemd."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import program, ran

DEPLOY = Path(__file__).parents[3] / "deploy"
_SCRIPT = DEPLOY / "slurm" / "drain_by_cron.sh"


def run(tmp_path: Path, settings: str) -> dict[str, str]:
    """Run the script with something that tells what it is given in place of the hook."""
    told = 'env; echo "ARGUMENTS=$*"; echo "NICE=$(nice)"; echo "DATA=$(ulimit -d)"'
    (tmp_path / "env").write_text(settings)
    ended = ran(
        [_SCRIPT, tmp_path / "env", program(tmp_path / "program", told)],
        env={"PATH": "/usr/bin:/bin"},
        check=True,
    )
    return dict(line.partition("=")[::2] for line in ended.stdout.splitlines())


def test_it_reads_the_settings_as_systemd_does_and_no_shell_reads_their_values(tmp_path: Path) -> None:
    seen = run(
        tmp_path,
        "# a remark\nCLUSTER_HOOK_WEBHOOK_URL=https://chat/x?a=1&b=$(id);`id`\n"
        'PATH="/opt/slurm/bin:/usr/bin:/bin"\nnot a setting\n'
        "CLUSTER_HOOK_DRAIN_OPTIONS=--at-once 4 --tell findings",
    )
    assert seen["CLUSTER_HOOK_WEBHOOK_URL"] == "https://chat/x?a=1&b=$(id);`id`"
    assert seen["PATH"] == "/opt/slurm/bin:/usr/bin:/bin"
    assert seen["ARGUMENTS"] == "drain --at-once 4 --tell findings"


def test_it_runs_behind_everything_else_in_half_of_the_memory(tmp_path: Path) -> None:
    seen = run(tmp_path, "")
    assert int(seen["NICE"]) == min(19, os.nice(0) + 10)
    (total,) = re.findall(r"^MemTotal: +(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert abs(int(seen["DATA"]) - int(total) // 2) <= 1


def test_without_settings_it_starts_the_drain_all_the_same(tmp_path: Path) -> None:
    seen = run(tmp_path, "")
    assert seen["ARGUMENTS"] == "drain"


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="logrotate is not installed here")
def test_logrotate_takes_its_file(tmp_path: Path) -> None:
    copy = tmp_path / "cluster-hook"
    copy.write_text((DEPLOY / "systemd" / "cluster-hook.logrotate").read_text())
    copy.chmod(0o644)
    command = ["logrotate", "--debug", f"--state={tmp_path / 'state'}", copy]
    ended = ran(command)
    assert (ended.returncode, "error" in ended.stderr) == (0, False), ended.stderr
