"""Real SSH hosts for the command: a directory of profiler data each, served on its own loopback address."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from cluster_collect.cli import main
from demo.sshd import SshLab, SshServer
from tests.commands import ran, ran_here
from tests.needed import need_sshd

CAPTURE = "node_1_20250101_ascend_pt"
OUTPUT = "ASCEND_PROFILER_OUTPUT"


@dataclass
class Hosts:
    """Servers and the inventory that names them; tests change `entries` and `defaults` before `write`."""

    directory: Path
    lab: SshLab
    entries: list[dict[str, object]] = field(default_factory=list)
    defaults: dict[str, object] = field(default_factory=dict)
    servers: dict[str, SshServer] = field(default_factory=dict)

    @property
    def inventory(self) -> Path:
        """The inventory file."""
        return self.directory / "hosts.yaml"

    def add(self, name: str, *, n_files: int = 3, size_bytes: int = 1000, **settings: str) -> Path:
        """Start a host with profiler data and list it; return its profiler root."""
        root = self.directory / "data" / name
        write_capture(root, n_files, size_bytes)
        server = self.lab.start(f"127.0.0.{len(self.entries) + 2}", settings=settings)
        self.servers[name] = server
        self.entries.append(
            {"address": server.address, "port": server.port, "server_id": name, "profiler_root": str(root)}
        )
        return root

    def write(self, **top: object) -> Path:
        """Write the inventory and return its path."""
        document = {"version": 1, **top, "defaults": self.defaults, "hosts": self.entries}
        self.inventory.write_text(yaml.safe_dump(document, sort_keys=False))
        return self.inventory

    def collect(
        self, *arguments: str, environment: Mapping[str, str] | None = None, apart: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run cluster-collect in the directory of the test; `apart`, as a process of its own."""
        run = process_of if apart else run_collect
        return run(["--inventory", str(self.write()), *arguments], self.directory, environment)


def write_capture(root: Path, n_files: int = 3, size_bytes: int = 1000) -> None:
    """Write a capture that the analysis would read, and `n_files` - 1 files that only `full` fetches."""
    output = root / CAPTURE / OUTPUT
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text("Device_id,Step\n0,1\n")
    for number in range(n_files - 1):
        (output / f"trace_{number}.bin").write_bytes(os.urandom(size_bytes))


def run_collect(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run cluster-collect in this process, as if it had one of its own in a directory."""
    return ran_here(main, arguments, {"COLUMNS": "100", **(environment or {})}, directory)


def process_of(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run cluster-collect as a process of its own, where that is what counts."""
    return ran(
        [sys.executable, "-m", "cluster_collect", *arguments],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100", **(environment or {})},
        stdin=subprocess.DEVNULL,
    )


def on_terminal(
    command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None, answer: str = ""
) -> tuple[int, str, str]:
    """Run a command with stderr on a terminal; return code, stdout and what the terminal showed.

    The terminal is read all the time: a full one would hold the command up. An answer is typed at the prompt.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=theirs if answer else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown, left = b"", answer.encode() + b"\n"
    with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
        while data := os.read(ours, 65536):
            shown += data
            if answer and left and b" for the " in shown:
                left = left[os.write(ours, left) :]
    os.close(ours)
    stdout = process.communicate()[0].decode()
    return process.returncode, stdout, shown.decode()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    """A directory for hosts; ends their servers."""
    need_sshd()
    with SshLab(tmp_path / "ssh") as lab:
        (tmp_path / "ssh" / "config").touch()
        defaults: dict[str, object] = {
            "user": lab.user,
            "identity_file": str(lab.identity_file),
            "known_hosts": str(lab.known_hosts),
            "ssh_config": str(tmp_path / "ssh" / "config"),
        }
        yield Hosts(tmp_path, lab, defaults=defaults)
