"""The epilog as an administrator installs it: on a Slurm that runs and was not told of it. The drain runs by
itself, as its timer has it, and the jobs are an ordinary user's where we are root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_hook.spool.spool import Spool
from cluster_run.errors import ExitCode
from tests.commands import program
from tests.hook.http_server import mailbox
from tests.hook.public_python import NOBODY, make_public_python, needs_root
from tests.slurm.conftest import REPOSITORY, why_not_here
from tests.slurm.lab import SlurmLab, start_lab

SLURM_COMMANDS = ("scontrol", "squeue", "sacct", "scancel", "sbatch", "srun", "sinfo")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@contextmanager
def slurm_of_its_own(public: Path) -> Iterator[SlurmLab]:
    """Run a Slurm which nobody has told of the epilog yet."""
    if why_not_here():
        pytest.skip(why_not_here())
    root = public / f"site-{len(list(public.iterdir()))}"
    root.mkdir()
    cluster = start_lab(root, REPOSITORY / "deploy" / "slurm" / "epilog_slurmctld.sh", 1, has_epilog=False)
    home = root / "home-of-user"  # where the probe's user writes
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def running(public: Path) -> Iterator[SlurmLab]:
    """One for all tests that do not install the epilog, and for the one that does, which is the last."""
    with slurm_of_its_own(public) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def installed(public: Path) -> Iterator[SlurmLab]:
    """One whose controller knows the epilog."""
    with slurm_of_its_own(public) as cluster:
        end_with_epilog(cluster)
        cluster.restart_controller()
        yield cluster


def check(lab: SlurmLab, python: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return lab.hook("check", f"--spool={lab.spool}", *options, python=python, check=False)


def probe(lab: SlurmLab, python: Path) -> subprocess.CompletedProcess[str]:
    return check(lab, python, "--probe", "--probe-user=nobody", f"--probe-dir={lab.root / 'home-of-user'}")


def end_with_epilog(lab: SlurmLab) -> None:
    # Slurm says in whole seconds when it started: a change in that second cannot be told from one before it.
    time.sleep(2.1)
    slurm_conf = lab.root / "slurm.conf"
    slurm_conf.write_text(slurm_conf.read_text() + f"EpilogSlurmctld={lab.root}/epilog.sh\n")


def run_job(lab: SlurmLab) -> Path:
    """Run a job that asks for the hook; return where its request belongs."""
    job = lab.sbatch("--comment=profile_dir=p", "--output=/dev/null", "--wrap", "true")
    assert lab.wait_for(job) == "COMPLETED"
    return lab.spool / "pending" / f"{job}.job"


@contextmanager
def drained(lab: SlurmLab, python: Path, *options: str, path: str = "") -> Iterator[None]:
    """Have a drain run as soon as there is a request, and once before, which has noted how it runs."""
    # What it notes there is what `check` goes by: a note of another test's drain says another PATH.
    (lab.spool / "drain.lock").unlink(missing_ok=True)
    drain = f"'{python}' -I -m cluster_hook drain '--spool={lab.spool}' {' '.join(options)}"
    # Each start computes for half a second, and a chain takes a minute.
    loop = (
        f"while :; do {drain}; /bin/sleep 1; "
        f"while set -- '{lab.spool}'/pending/*.job; [ ! -e \"$1\" ]; do /bin/sleep 0.2; done; done"
    )
    timer = subprocess.Popen(
        ["/bin/sh", "-c", loop],
        env={**lab.environment, **({"PATH": path} if path else {})},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        lab.wait_until(lambda: bool(Spool(lab.spool).drain_settings()), "no drain begins")
        yield
    finally:
        os.killpg(timer.pid, signal.SIGKILL)
        timer.wait()


@needs_root
def test_check_sees_an_installation_with_a_users_eyes(running: SlurmLab, public: Path) -> None:
    hidden = public / "hidden"
    python = make_public_python(hidden / "venv")
    assert "ok: nobody can run what the drain starts" in check(running, python).stdout
    (packages,) = (hidden / "venv").glob("lib/python*/site-packages")
    for closed in (packages / "cluster_analysis", hidden):
        closed.chmod(0o700)
        said = check(running, python).stdout
        closed.chmod(0o755)
        assert f"problem: nobody cannot run {python}" in said


@needs_root
@pytest.mark.parametrize("option", ["size=16k", "ro"])
def test_check_sees_a_spool_that_nothing_can_be_written_to(
    running: SlurmLab, python: Path, option: str
) -> None:
    script = f"mount -t tmpfs -o mode=0700,{option} tmpfs '{running.spool}/pending' || exit 77\n"
    script += f"exec '{python}' -I -m cluster_hook check '--spool={running.spool}'"
    said = running.run("unshare", "-m", "sh", "-c", script, check=False)
    if said.returncode == 77 or "unshare" in said.stderr:
        pytest.skip(f"nothing can be mounted here: {said.stderr}")
    assert "requests would be lost: is the disk full or read-only?" in said.stdout


def test_check_says_whether_a_drain_works(running: SlurmLab, python: Path) -> None:
    assert "problem: no drain has ever run" in check(running, python).stdout
    running.drain(python=python)
    assert "ok: the drain runs: last" in check(running, python).stdout
    (running.spool / "pending").chmod(0o777)
    assert "can be written by others" in check(running, python).stdout
    (running.spool / "pending").chmod(0o700)


def test_the_epilog_runs_when_check_says_so_and_not_before(running: SlurmLab, python: Path) -> None:
    said = check(running, python)
    assert said.returncode == ExitCode.FAILED
    assert "problem: slurm.conf names no EpilogSlurmctld" in said.stdout

    end_with_epilog(running)
    running.run("scontrol", "reconfigure")
    request = run_job(running)
    said = check(running, python)
    if "ok: the epilog runs" in said.stdout:  # a Slurm where this is enough
        running.wait_for_file(request)
    else:
        assert "restart slurmctld" in said.stdout
        assert "the epilog did not run" in probe(running, python).stdout
        assert not request.exists()

    running.restart_controller()
    assert "unknown: no job has ended since slurmctld started" in check(running, python).stdout
    running.wait_for_file(run_job(running))
    assert "ok: the epilog runs: last" in check(running, python).stdout


def test_the_probe_goes_through_the_whole_chain(installed: SlurmLab, python: Path) -> None:
    with mailbox() as box:
        webhook = installed.root / "webhook"
        webhook.write_text(box.url)
        with drained(installed, python, f"--webhook-file={webhook}"):
            said = probe(installed, python)
    assert said.returncode == ExitCode.DONE, said.stdout + said.stderr
    assert "ok: the epilog ran for job" in said.stdout
    assert "and found its slow rank" in said.stdout
    assert "ok: the webhook took the message" in said.stdout
    assert len(box.received) == 1
    assert list((installed.root / "home-of-user").iterdir()) == [], "the probe leaves nothing behind"


def test_the_drain_and_its_workers_find_slurm_wherever_the_site_has_it(
    installed: SlurmLab, python: Path
) -> None:
    """Nothing is on the path but Slurm's own commands, in a directory that no list of ours holds."""
    site, called = (
        Path(tempfile.mkdtemp(prefix="the site's slurm ", dir=installed.root)),
        installed.root / "called",
    )
    site.chmod(0o755)
    prefix = site / "bin"
    prefix.mkdir()
    called.unlink(missing_ok=True)
    called.touch()
    called.chmod(0o666)
    for name in SLURM_COMMANDS:
        found = shutil.which(name, path=installed.environment["PATH"])
        program(prefix / name, f"/usr/bin/id -u >> '{called}'\nexec {found} \"$@\"")
    with drained(installed, python, path=str(prefix)):
        said = probe(installed, python)
    assert said.returncode == ExitCode.DONE, said.stdout + said.stderr
    assert "and found its slow rank" in said.stdout
    assert {str(os.geteuid()), str(NOBODY if os.geteuid() == 0 else os.geteuid())} <= set(
        called.read_text().split()
    )


@needs_root
def test_the_probe_says_where_the_chain_breaks(installed: SlurmLab, python: Path) -> None:
    with drained(installed, python, path="/nowhere"):
        said = probe(installed, python)
    assert said.returncode == ExitCode.FAILED
    assert "problem: the drain does not reach Slurm with PATH=/nowhere" in said.stdout
    assert "problem: the drain could not do the request" in said.stdout

    with mailbox(status=404) as box:
        webhook = installed.root / "webhook"
        webhook.write_text(box.url)
        with drained(installed, python, f"--webhook-file={webhook}"):
            said = probe(installed, python)
    assert "did not arrive: no message was sent: the webhook answered 404" in said.stdout
