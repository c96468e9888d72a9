"""Turns a simulated run directory back into what it came from: hosts with a directory of their own each."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cluster_run.ids import HostId, ServerId
from cluster_run.layout import MAPPING_NAME, host_directory
from cluster_run.ranktable import parse_host_mapping
from demo.sshd import SshLab


@dataclass(frozen=True)
class DemoHost:
    """One host: its name in the rank table and where its profiler data lies."""

    server_id: ServerId
    profiler_root: Path


def lay_out_hosts(simulated: Path, directory: Path) -> tuple[DemoHost, ...]:
    """Move each host's data out of the run directory `simulated` into a directory of its own."""
    mapping = parse_host_mapping((simulated / MAPPING_NAME).read_text())
    return tuple(_lay_out(simulated, directory, server_id, host) for server_id, host in mapping.items())


def _lay_out(simulated: Path, directory: Path, server_id: ServerId, host: HostId) -> DemoHost:
    root = directory / server_id / "prof"
    root.parent.mkdir(parents=True)
    shutil.move(host_directory(simulated, host), root)
    return DemoHost(server_id, root)


def serve(lab: SshLab, hosts: Sequence[DemoHost], inventory: Path, rank_table: Path) -> None:
    """Start a server for each host on 127.0.0.2, 127.0.0.3, … and write the inventory that names them."""
    no_config = lab.directory / "ssh_config"
    no_config.touch()  # nothing of this user's own SSH configuration reaches the demo
    entries = []
    for number, host in enumerate(hosts, start=2):
        server = lab.start(f"127.0.0.{number}")
        entries.append(
            {
                "address": server.address,
                "port": server.port,
                "server_id": str(host.server_id),
                "profiler_root": str(host.profiler_root.resolve()),
            }
        )
    document = {
        "version": 1,
        "rank_table": rank_table.name,
        "defaults": {
            "user": lab.user,
            "identity_file": str(lab.identity_file.resolve()),
            "known_hosts": str(lab.known_hosts.resolve()),
            "ssh_config": str(no_config.resolve()),
        },
        "hosts": entries,
    }
    inventory.write_text(
        "# Written by the demo; its servers run only while it collects.\n"
        + yaml.safe_dump(document, sort_keys=False)
    )
