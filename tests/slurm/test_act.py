"""cluster-act on a real Slurm of emulated nodes: drained and resumed for real, in no job's way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cluster_act.cli import main as cluster_act
from cluster_fleet.identity import Known
from cluster_fleet.records import RunRecord, Series
from cluster_fleet.store import Fleet
from cluster_run.errors import ExitCode
from tests.commands import program, ran
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
NODE = "node4"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A fleet in which device 2 of node4 is slow."""
    return fleet_of(tmp_path / "fleet.db")


def fleet_of(db: Path, domain: str = "") -> Path:
    hosts = [Known(f"host:{one}", f"node{one}{domain}", f"host:{one}") for one in range(1, 5)]
    devices = [
        Known(f"vdie:{h.name}-{d}", f"device {d} of {h.name}", "", h.key) for h in hosts for d in range(8)
    ]
    chance = np.random.default_rng(1)
    with Fleet(db) as fleet:
        for at in range(20):
            values = chance.normal(0, 0.004, 32)
            values[-6] += 0.07
            series = Series("compute", [one.key for one in devices], values, np.full(32, np.nan))
            fleet.add(
                RunRecord(
                    str(at), str(at), 86400.0 * at, 1.0, 1.0, "degraded", {}, [*hosts, *devices], [series]
                )
            )
    return db


def act(lab: SlurmLab, db: Path, *argv: str, **environment: str) -> tuple[int, str]:
    ended = lab.run("--db", str(db), *argv, main=cluster_act, check=False, environment=environment)
    return ended.returncode, ended.stdout + ended.stderr


def state(lab: SlurmLab) -> str:
    """What Slurm says of the node, but for whether it answers at this moment."""
    found = re.search(r"State=(\S+)", lab.run("scontrol", "-o", "show", "node", NODE).stdout)
    assert found is not None
    return found[1].replace("+NOT_RESPONDING", "")


def test_a_slow_node_is_drained_with_a_reason_and_resumed(lab: SlurmLab, db: Path) -> None:
    lab.wait_until(lambda: state(lab) == "IDLE", f"{NODE} is not idle")
    assert act(lab, db, "--fleet")[0] == ExitCode.FINDINGS
    assert state(lab) == "IDLE"
    code, said = act(lab, db, "--fleet", "--apply", SLURM_SCRIPT_CONTEXT="epilog_slurmctld")
    assert (code, state(lab)) == (ExitCode.FAILED, "IDLE"), said
    try:
        code, said = act(lab, db, "--fleet", "--apply")
        assert code == ExitCode.DONE, said
        assert "DRAIN" in state(lab)
        assert "Reason=cluster-act:cact-" in lab.run("scontrol", "-o", "show", "node", NODE).stdout
        code, said = act(lab, db, "--undo", NODE, "--apply")
        assert (code, state(lab)) == (ExitCode.DONE, "IDLE"), said
    finally:
        lab.run("scontrol", "update", f"nodename={NODE}", "state=resume", check=False)


def test_hosts_that_call_themselves_by_more_than_slurm_does_are_drained_under_its_names(
    lab: SlurmLab, tmp_path: Path
) -> None:
    db, excluded = fleet_of(tmp_path / "fleet.db", ".site.example"), tmp_path / "excluded"
    lab.wait_until(lambda: state(lab) == "IDLE", f"{NODE} is not idle")
    code, said = act(lab, db, "--fleet", "--apply")
    assert (code, state(lab)) == (ExitCode.INCOMPLETE, "IDLE"), said
    assert "--node-name" in said
    names = ("--node-name", "{short}", "--exclude-file", str(excluded), "--apply")
    try:
        code, said = act(lab, db, "--fleet", *names)
        assert code == ExitCode.DONE, said
        assert "DRAIN" in state(lab)
        assert excluded.read_text() == f"{NODE}\n"
        code, said = act(lab, db, "--undo", "all", *names)
        assert (code, state(lab), excluded.read_text()) == (ExitCode.DONE, "IDLE", ""), said
    finally:
        lab.run("scontrol", "update", f"nodename={NODE}", "state=resume", check=False)


def test_the_lines_of_the_page_of_acting_drain_log_undo_and_probe(
    lab: SlurmLab, db: Path, tmp_path: Path
) -> None:
    """As they stand there, but for the site's own nodes; a program in the place of `ssh` reaches them."""
    site = {"node017": NODE, "node018": "node3", "/srv/fleet.db": str(db)}
    program(tmp_path / "matmul_ms", '[ "$1" = 5 ] && echo "$TOOK ms"')
    program(
        tmp_path / "ssh",
        f'[ "$3" = {NODE} ] && export TOOK=11 || export TOOK=10\ncd {tmp_path} && sh -c "$4"',
    )
    (block,) = re.findall(r"```bash\n(.*?)```", (DOCS / "act.md").read_text("utf-8"), re.DOTALL)
    for theirs, ours in site.items():
        assert theirs in block
        block = block.replace(theirs, ours)
    environment = {
        **lab.environment, "PYTHONPATH": str(DOCS.parent), "CLUSTER_FLEET": "",
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{lab.environment['PATH']}",
    }  # fmt: skip
    lab.wait_until(lambda: state(lab) == "IDLE", f"{NODE} is not idle")
    told, ends = [], []
    try:
        exported, *lines = block.splitlines()
        for line in lines:
            # Two minutes of probing are a second here.
            more = " --seconds 1" if "--probe" in line else ""
            typed = line.replace("cluster-act", f"{sys.executable} -m cluster_act", 1) + more
            script = f"{exported}\n{typed}"
            ended = ran(["sh", "-c", script], env=environment)
            told.append(ended.stdout + ended.stderr)
            ends.append((ended.returncode, "DRAIN" in state(lab)))
    finally:
        lab.run("scontrol", "update", f"nodename={NODE}", "state=resume", check=False)
    assert ends == [
        (ExitCode.FINDINGS, False), (ExitCode.DONE, True), (ExitCode.DONE, True), (ExitCode.DONE, False),
        (ExitCode.FINDINGS, False),
    ], told  # fmt: skip
    for said, word in zip(
        told, ("nothing was done", "drained", f"slurm {NODE} done", "resumed", ": slow"), strict=True
    ):
        assert word in said


def test_no_job_is_disturbed_and_nobody_else_s_drain_is_undone(
    lab: SlurmLab, db: Path, tmp_path: Path
) -> None:
    lab.wait_until(lambda: state(lab) == "IDLE", f"{NODE} is not idle")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nsleep 300\n")
    job = lab.sbatch("-w", NODE, "-o", "/dev/null", str(script), cwd=tmp_path)
    try:
        lab.wait_until(lambda: lab.job_fields(job)["JobState"] == "RUNNING", "the job does not start")
        code, said = act(lab, db, "--fleet", "--apply")
        assert (code, "jobs run on" in said, "DRAIN" in state(lab)) == (ExitCode.INCOMPLETE, True, False)
        code, said = act(lab, db, "--fleet", "--apply", "--drain-busy")
        assert code == ExitCode.DONE, said
        assert "DRAIN" in state(lab)
        assert lab.job_fields(job)["JobState"] == "RUNNING"
        # The administrator drains it for another reason: that is not ours to undo.
        lab.run("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=bad fan")
        code, said = act(lab, db, "--undo", "all", "--apply")
        assert (code, "another reason: bad fan" in said) == (ExitCode.INCOMPLETE, True), said
        assert "DRAIN" in state(lab)
    finally:
        lab.run("scancel", job, check=False)
        lab.run("scontrol", "update", f"nodename={NODE}", "state=resume", check=False)
        lab.wait_until(lambda: state(lab) == "IDLE", f"{NODE} is not idle again")
