"""A real Slurm of emulated nodes on loopback: no root, no systemd, nothing outside its own directory."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_hook.cli import main as cluster_hook
from tests.commands import program, ran, ran_here

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "sinfo")
_SEARCH_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
_UP_DEADLINE_S = 100.0
_JOB_DEADLINE_S = 150.0
_LAST_STATES = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}

_CONFIGURATION = """\
ClusterName=lab
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool.%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
OverTimeLimit=0
MinJobAge=3600
KillWait=1
InactiveLimit=0
{epilog}
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=8 RealMemory=8000 State=UNKNOWN
NodeName=node[1-{n_nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}]
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def missing_programs() -> list[str]:
    """Return which of Slurm's programs are not installed."""
    return [program for program in PROGRAMS if shutil.which(program, path=_SEARCH_PATH) is None]


@dataclass(frozen=True)
class SlurmLab:
    """A running cluster; `environment` makes Slurm's commands talk to it."""

    root: Path
    environment: Mapping[str, str]
    pids: list[int]

    @property
    def spool(self) -> Path:
        """Where the epilog drops requests."""
        return self.root / "hook-spool"

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
        main: Callable[[Sequence[str]], int] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against this cluster; one of our own, whose `main` is given, in this process."""
        env = {**self.environment, **(environment or {})}
        if main is not None:
            ended = ran_here(main, argv, cwd=cwd, env=env)
        else:
            ended = ran(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL)
        assert not check or ended.returncode == 0, f"{argv}: {ended.stderr}"
        return ended

    def sbatch(self, *argv: str, cwd: Path | None = None) -> str:
        """Submit a job; return its number."""
        return self.run("sbatch", "--parsable", *argv, cwd=cwd).stdout.strip()

    def hook(
        self, *argv: str, python: Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run cluster-hook, with `python` as somebody whose own modules do not count."""
        if python is None:
            return self.run(*argv, main=cluster_hook, **options)
        return self.run(str(python), "-I", "-m", "cluster_hook", *argv, **options)

    def drain(self, *options: str, python: Path | None = None, **how: Any) -> str:
        """Drain the spool; return what it says."""
        return self.hook("drain", f"--spool={self.spool}", *options, python=python, **how).stdout

    def job_fields(self, job: str) -> dict[str, str]:
        """Return what scontrol says of a job."""
        words = self.run("scontrol", "-o", "show", "job", job).stdout.split()
        return dict(word.partition("=")[::2] for word in words)

    def wait_for(self, job: str) -> str:
        """Wait for the end of a job, of all its parts; return the state of the last one."""
        states: list[str] = []

        def has_ended() -> bool:
            states[:] = re.findall(r"JobState=(\w+)", self.run("scontrol", "-o", "show", "job", job).stdout)
            return set(states) <= _LAST_STATES

        self.wait_until(has_ended, f"job {job} did not end")
        return states[-1]

    def wait_for_file(self, path: Path) -> None:
        """Wait until a job wrote a file."""
        self.wait_until(path.exists, f"{path} does not appear")

    def wait_until(self, holds: Callable[[], bool], otherwise: str = "it did not come to pass") -> None:
        """Wait until something holds."""
        for _ in _looks(_JOB_DEADLINE_S):
            if holds():
                return
        raise AssertionError(f"{otherwise}:\n{self.log_tail()}")

    def restart_controller(self) -> None:
        """Stop slurmctld and start it again, as its service does; jobs and nodes go on."""
        (pid,) = [pid for pid in self.pids if pid == int((self.root / "slurmctld.pid").read_text())]
        _end([pid])
        _start(["slurmctld", "-f", str(self.root / "slurm.conf")], self.environment)
        file = self.root / "slurmctld.pid"
        self.wait_until(lambda: file.exists() and file.read_text().strip() not in ("", str(pid)))
        self.pids[self.pids.index(pid)] = int(file.read_text())
        self.wait_until(lambda: "UP" in self.run("scontrol", "ping", check=False).stdout)

    def log_tail(self) -> str:
        """Return the end of the controller's log, for messages."""
        return (self.root / "slurmctld.log").read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        """End every process of the cluster, the authentication service last."""
        self.run("scancel", "--user", self.environment["USER"], check=False)
        *services, munge = self.pids
        _end(services)
        _end([munge])


def start_lab(root: Path, epilog: Path, n_nodes: int, *, has_epilog: bool = True) -> SlurmLab:
    """Start a cluster below `root` whose controller runs `epilog` after each job.

    Without `has_epilog` it is there, and slurm.conf does not name it yet.
    """
    user = _user_name()
    ports = _free_ports(n_nodes + 1)
    for name in ("state", "hook-spool", "hook-spool/pending"):
        (root / name).mkdir(mode=0o700)
    program(root / "epilog.sh", f"CLUSTER_HOOK_SPOOL={root}/hook-spool exec {epilog}")
    (root / "slurm.conf").write_text(
        _CONFIGURATION.format(
            root=root,
            user=user,
            epilog=f"EpilogSlurmctld={root}/epilog.sh" if has_epilog else "",
            n_nodes=n_nodes,
            controller_port=ports[-1],
            first_port=ports[0],
            last_port=ports[n_nodes - 1],
        )
    )
    environment = {**os.environ, "PATH": _SEARCH_PATH, "SLURM_CONF": str(root / "slurm.conf"), "USER": user}
    _start_munge(root, environment)
    _start(["slurmctld", "-c", "-f", str(root / "slurm.conf")], environment)
    for number in range(1, n_nodes + 1):
        (root / f"spool.node{number}").mkdir()
        _start(["slurmd", "-f", str(root / "slurm.conf"), "-N", f"node{number}"], environment)
    lab = SlurmLab(root, environment, _pids(root, n_nodes))
    _wait_until_idle(lab, n_nodes)
    return lab


def _start_munge(root: Path, environment: Mapping[str, str]) -> None:
    key = root / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    options = {
        "key-file": key,
        "socket": root / "munge.socket",
        "pid-file": root / "munged.pid",
        "log-file": root / "munged.log",
        "seed-file": root / "munge.seed",
    }
    _start(["munged", "--force", *(f"--{name}={path}" for name, path in options.items())], environment)


def _start(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    # Each of them goes into the background by itself once it is ready.
    subprocess.run(
        argv,
        env=dict(environment),
        check=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _pids(root: Path, n_nodes: int) -> list[int]:
    names = [*(f"slurmd.node{number}.pid" for number in range(1, n_nodes + 1)), "slurmctld.pid", "munged.pid"]
    end_s = time.monotonic() + _UP_DEADLINE_S
    while not all((root / name).exists() and (root / name).read_text().strip() for name in names):
        assert time.monotonic() < end_s, "Slurm's services did not start"
        time.sleep(0.05)
    return [int((root / name).read_text()) for name in names]


def _wait_until_idle(lab: SlurmLab, n_nodes: int) -> None:
    idle = ""
    for _ in _looks(_UP_DEADLINE_S):
        idle = lab.run("sinfo", "-h", "-t", "idle", "-o", "%D", check=False).stdout.strip()
        if idle == str(n_nodes):
            return
    lab.stop()
    raise AssertionError(f"{idle or 0} of {n_nodes} nodes are idle:\n{lab.log_tail()}")


def _looks(deadline_s: float) -> Iterator[None]:
    """Look again and again, ever less often: each look starts a command, and the tests beside it compute."""
    end_s, pause_s = time.monotonic() + deadline_s, 0.05
    while time.monotonic() < end_s:
        yield
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.5)


def _end(pids: Sequence[int]) -> None:
    """Ask all to end, then kill what is left; in one go, because each takes a second or two."""
    left = [pid for pid in pids if _signal(pid, signal.SIGTERM)]
    end_s = time.monotonic() + 120
    while left and time.monotonic() < end_s:
        time.sleep(0.05)
        left = [pid for pid in left if _signal(pid, 0)]
    for pid in left:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _free_ports(number: int) -> list[int]:
    """Return neighbouring free ports; Slurm wants one for each node and writes them as a range."""
    # Others that begin at this moment look elsewhere: a port is taken only when Slurm has started.
    for first in range(20_000 + os.getpid() % 500 * 20, 32_000, number):
        sockets: list[socket.socket] = []
        try:
            for port in range(first, first + number):
                one = socket.socket()
                sockets.append(one)
                one.bind(("127.0.0.1", port))
        except OSError:
            continue
        else:
            return list(range(first, first + number))
        finally:
            for one in sockets:
                one.close()
    raise AssertionError("no free ports")


def _user_name() -> str:
    return ran(["id", "-un"], check=True).stdout.strip()
