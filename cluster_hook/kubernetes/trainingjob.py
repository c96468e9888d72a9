"""Training jobs of the kinds the sweep knows, as one value. Pure: objects in, values out.

batch/v1 Job                      conditions Complete, Failed (Kubernetes)
batch.volcano.sh/v1alpha1 Job     status.state.phase (Volcano)
mindxdl.gitee.com/v1 AscendJob    conditions Succeeded, Failed (Ascend Operator)
kubeflow.org/v1 PyTorchJob        conditions Succeeded, Failed (Kubeflow)
kubeflow.org/v2beta1 MPIJob       conditions Succeeded, Failed (MPI Operator)
jobset.x-k8s.io/v1alpha2 JobSet   conditions Completed, Failed (JobSet)
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cluster_hook.kubernetes.api import ApiObject
from cluster_run.errors import read_as

JobState = Literal["running", "succeeded", "failed"]

PREFIX = "cluster-hook/"
#: Annotation by the user: directory of the job's ranks below the profile volume.
PROFILE_DIR = PREFIX + "profile-dir"
#: Alternative annotation: directory on the nodes' own disks, below the collectors' mount.
NODE_DIR = PREFIX + "node-dir"
#: Optional annotation: the ConfigMap with hccl.json, where it is not `rings-config-<job>`.
RANK_TABLE_CONFIG_MAP = PREFIX + "rank-table-configmap"
#: Annotation by the sweep.
STATE = PREFIX + "state"
CLAIM = PREFIX + "claim"
ATTEMPTS = PREFIX + "attempts"
VERDICT = PREFIX + "verdict"
SUMMARY = PREFIX + "summary"
RESULTS = PREFIX + "results"
REPORT = PREFIX + "report"
#: Keeps a job that ended, or was deleted, until a sweep has finished with it.
FINALIZER = PREFIX + "profile"

#: States of our own that no sweep looks at again.
_LAST_STATES = ("done", "failed")
#: The state of a job whose data this sweep may not read.
UNREADABLE = "unreadable"


@dataclass(frozen=True)
class JobKind:
    """A kind of training job: its group and version, and its plural name in paths."""

    group_version: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the collection, or of one job."""
        root = f"/apis/{self.group_version}/namespaces/{namespace}/{self.plural}"
        return f"{root}/{name}" if name else root


BATCH = JobKind("batch/v1", "jobs")
VOLCANO = JobKind("batch.volcano.sh/v1alpha1", "jobs")
KINDS = (
    *(BATCH, VOLCANO),
    JobKind("mindxdl.gitee.com/v1", "ascendjobs"),
    JobKind("kubeflow.org/v1", "pytorchjobs"),
    JobKind("kubeflow.org/v2beta1", "mpijobs"),
    JobKind("jobset.x-k8s.io/v1alpha2", "jobsets"),
)

_VOLCANO_STATES: Mapping[str, JobState] = {
    "Completed": "succeeded",
    "Failed": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}
_CONDITIONS: Mapping[str, JobState] = {
    **dict.fromkeys(("Complete", "Completed", "Succeeded"), "succeeded"),
    "Failed": "failed",
}


@dataclass(frozen=True)
class TrainingJob:
    """A training job as the sweep sees it.

    `finished_s` is None where the job does not say when it ended, `ttl_s` where it stays until it is deleted.
    """

    kind: JobKind
    namespace: str
    name: str
    uid: str
    version: str
    state: JobState
    finished_s: float | None
    annotations: Mapping[str, str]
    began_s: float | None
    ttl_s: float | None
    finalizers: tuple[str, ...]
    is_deleted: bool

    @property
    def path(self) -> str:
        """The job's path in the API."""
        return self.kind.path(self.namespace, self.name)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.kind.plural}/{self.name}"

    @property
    def is_settled(self) -> bool:
        """Whether a sweep has finished with it."""
        return self.annotations.get(STATE) in _LAST_STATES

    @property
    def n_attempts(self) -> int:
        """How often a sweep tried it; text that is no number counts as none."""
        text = self.annotations.get(ATTEMPTS, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0

    @property
    def rank_table_config_map(self) -> str:
        """The ConfigMap that holds its rank table."""
        return self.annotations.get(RANK_TABLE_CONFIG_MAP) or f"rings-config-{self.name}"

    def is_claimed(self, now_s: float) -> bool:
        """Whether another sweep works on it; a claim that cannot be read does not count."""
        _, until, expires = self.annotations.get(CLAIM, "").rpartition(" until ")
        is_claim = until and expires.isascii() and expires.isdigit() and len(expires) <= 12
        return bool(is_claim) and int(expires) > now_s


def claim_text(holder: str, expires_s: int) -> str:
    """Return a sweep's word that it works on a job, good until then (seconds since 1970)."""
    return f"{holder} until {expires_s}"


def parse_training_job(kind: JobKind, item: ApiObject) -> TrainingJob:
    """Return the training job that an API object describes.

    Raises:
        InputError: the object has not the form of its kind.
    """
    with read_as(f"an object of {kind.group_version} {kind.plural} has another form"):
        metadata = item["metadata"]
        status = item.get("status") or {}
        state, finished_s = _volcano_end(status) if kind == VOLCANO else _end_by_conditions(status)
        return TrainingJob(
            kind=kind,
            namespace=str(metadata["namespace"]),
            name=str(metadata["name"]),
            uid=str(metadata["uid"]),
            version=str(metadata["resourceVersion"]),
            state=state,
            finished_s=finished_s,
            annotations=dict(metadata.get("annotations") or {}),
            began_s=_seconds(status.get("startTime") or metadata.get("creationTimestamp")),
            ttl_s=_ttl_s(item.get("spec") or {}),
            finalizers=tuple(map(str, metadata.get("finalizers") or ())),
            is_deleted=bool(metadata.get("deletionTimestamp")),
        )


def _end_by_conditions(status: ApiObject) -> tuple[JobState, float | None]:
    for condition in status.get("conditions") or []:
        state = _CONDITIONS.get(condition.get("type", ""))
        if state is not None and condition.get("status") == "True":
            return state, _seconds(status.get("completionTime") or condition.get("lastTransitionTime"))
    return "running", None


def _volcano_end(status: ApiObject) -> tuple[JobState, float | None]:
    end = status.get("state") or {}
    state = _VOLCANO_STATES.get(end.get("phase", ""), "running")
    return state, _seconds(end.get("lastTransitionTime")) if state != "running" else None


def _ttl_s(spec: ApiObject) -> float | None:
    # Kubeflow's kinds keep it one level deeper.
    seconds = {**(spec.get("runPolicy") or {}), **spec}.get("ttlSecondsAfterFinished")
    return float(seconds) if isinstance(seconds, int) else None


def _seconds(text: object) -> float | None:
    """Return the seconds since 1970 of an API time, which is always UTC."""
    try:
        return float(calendar.timegm(time.strptime(str(text)[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None
