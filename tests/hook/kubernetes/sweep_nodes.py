"""Two nodes with profiler data of their own, for tests of sweeps that collect on them."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from cluster_hook.cli import main
from cluster_hook.kubernetes.trainingjob import PREFIX
from tests.hook.kubernetes.sweep_site import Site

NODES = {"node-a": "10.0.0.1", "node-b": "10.0.0.2"}
NO_TIME: dict[str, Any] = {"conditions": [{"type": "Complete", "status": "True"}]}


class Nodes:
    """A site whose nodes have disks of their own; each runs its collector when told."""

    def __init__(self, site: Site, root: Path) -> None:
        self.site, self.root, self.exchange = site, root, root / "exchange"
        self.exchange.mkdir(parents=True)

    def add_job(self, simulated: Path, *, status: dict[str, Any] | None = None, **changes: Any) -> None:
        """Add a job whose pods ran on two nodes, and what they wrote there."""
        changes.setdefault("annotations", {PREFIX + "node-dir": "jobs/train"})
        self.site.add_job("train", status=NO_TIME if status is None else status, **changes)
        ((key, job),) = [pair for pair in self.site.cluster.objects.items() if pair[0][3] == "train"]
        # The site's jobs say where on the volume they wrote.
        job["metadata"]["annotations"].pop(PREFIX + "profile-dir")
        for number, (node, address) in enumerate(NODES.items(), start=1):
            self.add_pod(f"train-{number}", node, address, job["metadata"]["uid"])
            shutil.copytree(
                simulated / "cluster_profiler" / str(number) / "profiler", self.disk(node) / "jobs" / "train"
            )
        assert key[2] == "jobs"

    def add_pod(self, name: str, node: str, address: str, owner: str) -> None:
        self.site.cluster.add(
            "/api/v1", "pods", name,
            metadata={"ownerReferences": [{"uid": owner}]},
            spec={"nodeName": node}, status={"hostIP": address},
        )  # fmt: skip

    def disk(self, node: str) -> Path:
        return self.root / node

    def command(self, node: str, *options: str) -> list[str]:
        where = [f"--node={node}", f"--profiles={self.disk(node)}", f"--exchange={self.exchange}"]
        return [sys.executable, "-m", "cluster_hook", "node-collect", *where, *options]

    def collect(self, node: str) -> str:
        """Have the collector of a node look once; return what it says."""
        with redirect_stdout(io.StringIO()) as said:
            main(self.command(node, "--once")[3:])
        return said.getvalue()

    def sweep(self, **changes: Any) -> list[tuple[str, str]]:
        return self.site.sweep(node_exchange=self.exchange, **changes)

    def asked(self) -> Path:
        (asked,) = self.exchange.iterdir()
        return asked

    def result(self, name: str) -> dict[str, Any]:
        results = self.site.options.results / self.site.said("train", "results")
        document: dict[str, Any] = json.loads((results / name).read_text())
        return document


def rank_table(simulated: Path) -> dict[str, str]:
    """Return the job's rank table with the addresses of its nodes."""
    table = json.loads((simulated / "hccl.json").read_text())
    for server, address in zip(table["server_list"], NODES.values(), strict=True):
        server["server_id"] = address
    return {"hccl.json": json.dumps(table)}


def ran_until(end_s: float) -> dict[str, Any]:
    """Return the status of a job that ran for an hour."""
    begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s)) for at_s in (end_s - 3600, end_s))
    return {**NO_TIME, "startTime": begin, "completionTime": end}


def touch_all(top: Path, at_s: float) -> None:
    for path in top.rglob("*"):
        os.utime(path, (at_s, at_s))
