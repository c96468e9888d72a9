"""Keeps jobs that are deleted soon after their end until a sweep has finished with them.

Sweeps look every few minutes; `ttlSecondsAfterFinished` may take a job before one of them has seen it. A
finalizer of ours keeps it. A job that is so short that no sweep sees it run brings the finalizer itself.
"""

from __future__ import annotations

import contextlib

from cluster_hook.kubernetes.api import ApiClient, ApiError
from cluster_hook.kubernetes.trainingjob import FINALIZER, TrainingJob

#: A job that stays this long after its end has been seen by several sweeps.
ENOUGH_S = 1800.0


def hold(api: ApiClient, job: TrainingJob) -> None:
    """Let a job that runs stay after its end, where it would be deleted soon."""
    is_short = job.ttl_s is not None and job.ttl_s < ENOUGH_S
    if is_short and not job.is_deleted and FINALIZER not in job.finalizers:
        _set_finalizers(api, job, (*job.finalizers, FINALIZER))


def release(api: ApiClient, job: TrainingJob) -> None:
    """Let go of a job: it may be deleted."""
    if FINALIZER in job.finalizers:
        _set_finalizers(api, job, tuple(one for one in job.finalizers if one != FINALIZER))


def _set_finalizers(api: ApiClient, job: TrainingJob, finalizers: tuple[str, ...]) -> None:
    # The list is replaced as a whole: only that of the version we know. The next sweep tries again.
    change = {"resourceVersion": job.version, "finalizers": list(finalizers)}
    with contextlib.suppress(ApiError):
        api.merge_patch(job.path, {"metadata": change})
