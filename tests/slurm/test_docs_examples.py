"""The examples of docs/hooks*.md, run as they stand there, by somebody who has nothing but them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.conftest import REPOSITORY
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

_TEXT = "\n".join((REPOSITORY / "docs" / name).read_text() for name in ("hooks.md", "hooks-reference.md"))
_BLOCKS = re.findall(r"^```sh\n(.*?)^```$", _TEXT, re.MULTILINE | re.DOTALL)


def the_block_with(words: str) -> str:
    (block,) = [block for block in _BLOCKS if words in block]
    return block


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with the project installed in it as the page says."""
    (tmp_path / "cluster-profiler").symlink_to(sys.prefix)
    return tmp_path


def run_block(lab: SlurmLab, block: str, home: Path, until: str) -> str:
    """Run the lines of a block; return what they say up to a line with `until`, which some wait for."""
    environment = {
        **lab.environment,
        "HOME": str(home),
        "PATH": f"{home}/cluster-profiler/bin:{lab.environment['PATH']}",
    }
    shell = subprocess.Popen(
        ["timeout", "140", "sh", "-c", block],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout is not None
    said = ""
    try:
        for line in shell.stdout:
            said += line
            if until in line:
                break
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()
    assert until in said, said
    return said


def test_the_users_fake_job_is_told_its_slow_rank(lab: SlurmLab, home: Path) -> None:
    said = run_block(lab, the_block_with("fake.sbatch"), home, until="degraded: Rank ")
    assert "this job wrote no profile" not in said


def test_the_administrators_fake_job_is_told_its_slow_rank(lab: SlurmLab, home: Path) -> None:
    block = the_block_with("--wrap")
    for theirs, ours in (("/opt/cluster-profiler", sys.prefix), ("/var/spool/cluster-hook", str(lab.spool))):
        assert theirs in block
        block = block.replace(theirs, ours)
    submitted, listed, drained = block.splitlines()
    said = lab.run("sh", "-c", submitted, cwd=home).stdout
    lab.wait_for(said.split()[-1])
    lab.wait_for_file(lab.spool / "pending" / f"{said.split()[-1]}.job")
    run_block(lab, f"{listed}\n{drained}", home, until="degraded: Rank ")
