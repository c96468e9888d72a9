"""A cluster with two volumes, and the sweep over it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cluster_hook.kubernetes.api import ApiAccess, ApiClient
from cluster_hook.kubernetes.sweep import SweepOptions, Swept, sweep
from cluster_hook.kubernetes.trainingjob import PREFIX
from tests.hook.kubernetes.fake_kubernetes import FakeKubernetes

LABELS = {"cluster-hook/enabled": "true"}
ENDED = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"}
RUNNING: dict[str, Any] = {"active": 1}
BATCH = "/apis/batch/v1"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1"
ASCEND = "/apis/mindxdl.gitee.com/v1"


@dataclass
class Site:
    """A cluster, its volumes, and the sweep's options."""

    cluster: FakeKubernetes
    options: SweepOptions

    def add_job(
        self,
        name: str,
        *,
        profile_dir: str | None = None,
        status: dict[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        """Add a training job that ended long ago."""
        said = {PREFIX + "profile-dir": profile_dir if profile_dir is not None else name}
        metadata = {"labels": LABELS, "annotations": {**said, **changes.pop("annotations", {})}}
        group, plural = changes.pop("kind", (BATCH, "jobs"))
        status = ENDED if status is None else status
        self.cluster.add(group, plural, name, status=status, metadata=metadata, **changes)

    def add_data(self, simulated: Path, name: str) -> Path:
        """Put the captures of the simulated job onto the profile volume."""
        target = self.options.profiles / name
        shutil.copytree(simulated / "cluster_profiler", target)
        for path in target.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        return target

    def sweep(self, **changes: Any) -> list[tuple[str, str]]:
        """Sweep once; return what became of which job."""
        options = replace(self.options, **changes)
        told: list[Swept] = []
        sweep(ApiClient(ApiAccess(self.cluster.url)), options, told.append)
        return [(one.job, one.state) for one in told]

    def said(self, name: str, key: str) -> str:
        """Return what the sweep wrote on a job."""
        return self.cluster.annotations(name).get(PREFIX + key, "")

    def findings(self, name: str = "train") -> dict[str, Any]:
        """Return the findings of a job."""
        path = self.options.results / self.said(name, "results") / "findings.json"
        document: dict[str, Any] = json.loads(path.read_text())
        return document
