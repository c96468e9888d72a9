"""Keeps what a job needs until a sweep has finished with it: the job itself, and its rank table.

Sweeps look every few minutes; `ttlSecondsAfterFinished` may take a job before one of them has seen it. A
finalizer of ours keeps it. A job that is so short that no sweep sees it run brings the finalizer itself. The
ConfigMap of a rank table goes when the job goes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from cluster_hook.kubernetes.api import ApiClient, ApiError
from cluster_hook.kubernetes.trainingjob import FINALIZER, TrainingJob
from cluster_run.errors import ClusterError
from cluster_run.files import write_text_whole
from cluster_run.layout import RANK_TABLE_NAME
from cluster_run.ranktable import parse_rank_table

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


def keep_rank_table(api: ApiClient, job: TrainingJob, work_dir: Path) -> str:
    """Keep the rank table of a job that runs or ended; return why none may be read, empty where they may."""
    path = work_dir / RANK_TABLE_NAME
    if path.is_file():
        return ""
    name = job.rank_table_config_map
    try:
        item = api.get(f"/api/v1/namespaces/{job.namespace}/configmaps/{name}")
        text = str(((item or {}).get("data") or {}).get(RANK_TABLE_NAME, ""))
        if text:
            # One that is not completed yet is refused here, and asked for again by the next sweep.
            parse_rank_table(text, name)
            write_text_whole(path, text)
    except ApiError as error:
        return str(error) if error.status == 403 else ""
    except (ClusterError, OSError):
        pass
    return ""
