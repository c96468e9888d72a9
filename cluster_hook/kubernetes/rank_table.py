"""Keeps the rank tables of jobs: the ConfigMap of one goes when the job goes."""

from __future__ import annotations

from pathlib import Path

from cluster_hook.kubernetes.api import ApiClient, ApiError
from cluster_hook.kubernetes.trainingjob import TrainingJob
from cluster_run.errors import ClusterError
from cluster_run.files import write_text_whole
from cluster_run.layout import RANK_TABLE_NAME
from cluster_run.ranktable import parse_rank_table


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
