"""Loopback hosts, each an SSH server with a /dev/shm and processes of its own; and jobs on them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from tests.commands import HANGS_S, wait_until
from tests.needed import need_sshd

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
_INSIDE = (
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"),
)
_END_S = 5.0


def need_namespaces() -> None:
    """Skip a test where hosts cannot be kept apart."""
    need_sshd()
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("no unshare and nsenter here: hosts need a /dev/shm of their own")
    done = subprocess.run([*_INSIDE, "true"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no namespaces for hosts here (root is needed): {done.stderr.decode()[-200:]}")


def children(process: int) -> list[int]:
    """Return the processes that one has started; none where it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def wait_until_started(job: Path, n_ranks: int) -> None:
    """Wait until each rank of a job has said in its directory that it runs."""
    wait_until(
        lambda: len(list(job.glob("*.started"))) >= n_ranks,
        otherwise=lambda: "".join(path.read_text()[-500:] for path in job.glob("*.log")),
    )


@dataclass
class LiveHost:
    """A host: its server, and the process whose namespaces are its own."""

    number: int
    server: SshServer
    directory: Path
    inner: int

    @property
    def configuration(self) -> Path:
        """PROF_CONFIG_PATH of its ranks."""
        return self.directory / "cfg"

    def enter(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a process on the host."""
        with log.open("ab") as stream:
            return subprocess.Popen(
                ["nsenter", "-t", str(self.inner), "--mount", "--pid", "--", *command],
                env=dict(environment),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )


@dataclass
class Cluster:
    """Hosts on 127.0.0.2, 127.0.0.3, …"""

    directory: Path
    lab: SshLab
    package: Path
    hosts: list[LiveHost] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add(self, n: int) -> None:
        """Start hosts."""
        for number in range(len(self.hosts), len(self.hosts) + n):
            server = self.lab.start(f"127.0.0.{number + 2}", inside=_INSIDE)
            (inner,) = children(server.process_id)
            directory = self.directory / f"host{number}"
            (directory / "cfg").mkdir(parents=True)
            (directory / "prof").mkdir()
            self.hosts.append(LiveHost(number, server, directory, inner))

    def specs(self, **changes: object) -> list[HostSpec]:
        """Return the inventory."""
        return [
            HostSpec(
                host=HostId(str(host.number + 1)),
                server_id=ServerId(f"node{host.number}"),
                address=host.server.address,
                port=host.server.port,
                user=self.lab.user,
                identity_file=str(self.lab.identity_file),
                known_hosts=str(self.lab.known_hosts),
                profiler_root=str(host.directory / "prof"),
                ssh_config=os.devnull,
                **changes,  # type: ignore[arg-type]
            )
            for host in self.hosts
        ]

    def job(self, name: str = "job", hosts: Sequence[LiveHost] | None = None, **settings: object) -> Job:
        """Make a job; it begins with `start`."""
        on = list(self.hosts if hosts is None else hosts)
        return Job(self, name, on, **settings)  # type: ignore[arg-type]

    def leaves(self, *faults: str, dp: int = 4, ranks_per_host: int = 4) -> dict[str, str]:
        """Have captures from now on be those of a simulated job; return the environment of its ranks."""
        spec = {"tp": 2, "pp": 1, "dp": dp, "ranks_per_host": ranks_per_host, "forward_ms": 20.0}
        simulated = self.directory / "simulated.json"
        new = simulated.with_suffix(".part")
        new.write_text(json.dumps({"spec": spec, "faults": faults}))
        new.rename(simulated)
        return {"SIMULATED": str(simulated)}

    def end(self) -> None:
        """End all that was started, but for the servers, which the lab ends.

        What runs on a host is a child of its nsenter, which waits for it. Else the machine's first process
        would have to: a host does not end before somebody has waited for each of its processes.
        """
        for process in self.processes:
            for child in children(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            process.kill()
            process.wait()


@dataclass
class Job:
    """A job on some hosts. `by_daemon` has its ranks ask a daemon instead of a file."""

    cluster: Cluster
    name: str
    hosts: list[LiveHost]
    n_ranks: int = 2
    step_s: float = 0.05
    environment: Mapping[str, str] = field(default_factory=dict)
    configurations: Mapping[int, Path] = field(default_factory=dict)
    first_steps: Mapping[int, int] = field(default_factory=dict)
    first_rank: int = 0
    #: What only the ranks of some hosts have in their environment.
    of_hosts: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    #: A command that runs each rank, such as unshare.
    inside: Sequence[str] = ()
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        """Where it is told to begin and to end."""
        return self.cluster.directory / self.name

    def start(self) -> Job:
        """Start all ranks and wait until each makes steps."""
        self.directory.mkdir(exist_ok=True)
        for host in self.hosts:
            for local in range(self.n_ranks):
                self._start_rank(host, local)
        wait_until_started(self.directory, len(self.processes))
        (self.directory / "begin.part").write_text(str(time.time()))
        (self.directory / "begin.part").rename(self.directory / "begin")
        return self

    def _start_rank(self, host: LiveHost, local: int) -> None:
        rank = self.first_rank + self.hosts.index(host) * self.n_ranks + local
        paths = [str(HERE / "standins"), str(ROOT)]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(host.directory),
            "PYTHONPATH": os.pathsep.join(paths),
            "RANK": str(rank),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(len(self.hosts) * self.n_ranks),
            "MASTER_ADDR": "127.0.0.2",
            "MASTER_PORT": "29500",
            "SLURM_JOB_ID": f"{self.name}",
            "HOST_NUMBER": str(host.number),
            "PROF_CONFIG_PATH": str(self.configurations.get(host.number, host.configuration)),
            **self.environment,
            **self.of_hosts.get(host.number, {}),
        }
        if host.number in self.first_steps:
            environment["FIRST_STEP"] = str(self.first_steps[host.number])
        environment = {name: value for name, value in environment.items() if value}
        command = [
            *self.inside,
            sys.executable,
            str(HERE / "rank.py"),
            str(self.cluster.package),
            str(self.directory),
            str(self.step_s),
        ]
        process = host.enter(command, environment, self.directory / f"rank{rank}.log")
        self.processes[rank] = process
        self.cluster.processes.append(process)

    def end(self) -> None:
        """Let it end by itself."""
        (self.directory / "end").touch()
        for process in self.processes.values():
            process.wait(HANGS_S)
