"""No output of a run in which each host fails in its own way holds a host's name or address."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster_hook.job import job_to_text
from demo.sshd import SshLab, SshServer, free_port, make_key
from tests.commands import ran
from tests.hook.http_server import mailbox
from tests.hook.jobs import a_job
from tests.needed import needs_sshd

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
]

_WELL = ("trainer-a1", "trainer-a2")
#: How each of the other hosts fails.
_WAYS = (
    *("refused", "unknown-name", "login", "host-key-changed", "host-key-unknown"),
    *("no-root", "no-data", "not-listed"),
)


#: Of these the configuration of ssh knows another name.
_ALIASED = ("login", "host-key-changed", "host-key-unknown", "no-root")
_ALIAS = "LocalHost"


def name_of(way: str) -> str:
    return f"trainer-{way}-x7"


@dataclass(frozen=True)
class Said:
    """Everything that a run gave out, by where, and what none of it may hold."""

    outputs: Mapping[str, str]
    secrets: tuple[str, ...]


def _host_block(name: str, address: str, port: int, *further: str) -> str:
    return "\n".join([f"Host {name}", f"  HostName {address}", f"  Port {port}", *further]) + "\n"


def write_ssh_config(lab: SshLab, root: Path) -> tuple[str, ...]:
    """Start the servers, break what shall be broken; return the addresses."""
    servers: dict[str, SshServer] = {}
    blocks: list[str] = []
    for number, name in enumerate((*_WELL, *map(name_of, _WAYS)), start=21):
        address = f"127.0.7.{number}"
        if name == name_of("refused"):
            blocks.append(_host_block(name, address, free_port(address)))
        elif name != name_of("unknown-name"):  # of that one nobody has heard
            if name in map(name_of, _ALIASED):
                address = "127.0.0.1"
            servers[name] = lab.start(address)
            wrong = (f"  IdentityFile {make_key(root / 'other_key')}",) if name == name_of("login") else ()
            called = _ALIAS if name in map(name_of, _ALIASED) else address
            lab.trust(called, servers[name].port, servers[name].host_key)
            blocks.append(_host_block(name, called, servers[name].port, *wrong))
    known = lab.known_hosts.read_text().splitlines()
    unknown, changed = servers[name_of("host-key-unknown")], servers[name_of("host-key-changed")]
    new = {f":{server.port} " for server in (unknown, changed)}
    known = [line for line in known if not any(port in line for port in new)]
    lab.known_hosts.write_text("\n".join(known) + "\n")
    lab.trust(_ALIAS, changed.port, make_key(root / "other_host_key"))
    blocks.append(f"Host *\n  IdentityFile {lab.identity_file}\n  UserKnownHostsFile {lab.known_hosts}\n")
    (root / "ssh_config").write_text("".join(blocks))
    return _ALIAS, *(f"127.0.7.{number}" for number in range(21, 21 + len(_WELL) + len(_WAYS)))


def write_disks(root: Path, simulated: Path) -> None:
    """Give each host that gets that far what it has of profiler data."""
    captures = simulated / "cluster_profiler"
    for number, name in enumerate(_WELL, start=1):
        shutil.copytree(captures / str(number) / "profiler", root / f"disk-of-{name}")
    (root / f"disk-of-{name_of('no-data')}").mkdir()
    closed = root / f"disk-of-{name_of('not-listed')}"
    shutil.copytree(captures / "1" / "profiler", closed / "open")
    (closed / "closed_ascend_pt").symlink_to(f"/data/{name_of('not-listed')}")


@pytest.fixture(scope="module")
def said(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Said:
    root = tmp_path_factory.mktemp("job")
    nodes = (*_WELL, *map(name_of, _WAYS))
    write_disks(root, simulated)
    (root / "work").mkdir()
    (root / "textfile").mkdir()
    with SshLab(root / "ssh") as lab, mailbox() as chat:
        addresses = write_ssh_config(lab, root)
        (root / "site.yaml").write_text(f"version: 1\ndefaults:\n  ssh_config: {root}/ssh_config\n")
        (root / "webhook").write_text(chat.url)
        comment = f"profile_dir={root}/disk-of-%N,profile_via=ssh"
        job = a_job(nodes=nodes, work_dir=root / "work", comment=comment, began_s=1.0)
        (root / "job.json").write_text(job_to_text(job))
        argv = [sys.executable, "-m", "cluster_hook", "slurm-post", f"--job-file={root}/job.json"]
        argv += [
            f"--host-defaults={root}/site.yaml",
            f"--webhook-file={root}/webhook",
            "--webhook-format=slack",
        ]
        argv += [f"--prometheus-dir={root}/textfile", "--tell=always"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ended = ran(argv, env=environment, cwd="/")
        ((_, message),) = chat.received
    results = root / "work" / "cluster-run-12" / "cluster_analysis_output"
    outputs = {path.name: path.read_text() for path in results.iterdir() if path.is_file()}
    outputs |= {"stdout": ended.stdout, "stderr": ended.stderr, "chat": json.loads(message)["text"]}
    outputs |= {path.name: path.read_text() for path in (root / "textfile").iterdir()}
    assert ended.returncode == 3, ended.stderr
    return Said(outputs, (*nodes, *addresses))


_NAMES = ("findings.json", "report.html", "cluster-hook.json", "metrics.prom", "cluster_analysis_12.prom")


@pytest.mark.timeout(200)
@pytest.mark.parametrize("output", [*_NAMES, "stdout", "stderr", "chat"])
def test_no_output_holds_a_hosts_name_or_address(said: Said, output: str) -> None:
    text = said.outputs[output]
    assert text
    found = sorted({one for one in said.secrets if re.search(re.escape(one), text, re.IGNORECASE)})
    assert found == [], [line for line in text.splitlines() for one in found if one in line][:10]


@pytest.mark.timeout(200)
def test_no_other_output_does(said: Said) -> None:
    leaky = {name for name, text in said.outputs.items() for one in said.secrets if one in text}
    assert leaky == set()


@pytest.mark.timeout(200)
def test_every_host_that_failed_is_a_problem_with_its_number_and_a_reason(said: Said) -> None:
    problems = json.loads(said.outputs["findings.json"])["problems"]
    hosts = {one["host"] for one in problems if "host" in one and one["reason"]}
    assert {str(number) for number in range(3, 3 + len(_WAYS))} <= hosts
