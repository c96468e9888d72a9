"""`cluster-hook sweep`: finds training jobs that ended, analyses each once, and writes the verdict on it.

Kubernetes starts nothing after a job, so a CronJob looks at intervals. Several sweeps may run at once: a job
is claimed with a patch that only one of them can make, and a claim expires, so that a killed sweep loses
no job.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cluster_hook.follow.pipeline import FollowOptions, failed, follow
from cluster_hook.job import ProfileRequest, ReportedJob, Wording
from cluster_hook.kubernetes.api import ApiClient, ApiError
from cluster_hook.kubernetes.keeping import hold, keep_rank_table, release
from cluster_hook.kubernetes.node_disks import asked_directory, assemble, remember_nodes, wait_for_nodes
from cluster_hook.kubernetes.node_exchange import forget, forget_older
from cluster_hook.kubernetes.raw_files import bring_raw, with_raw_asked
from cluster_hook.kubernetes.readable import (
    is_being_written,
    owner_of,
    profile_directory,
    refuse_links_out,
    why_unreadable,
)
from cluster_hook.kubernetes.trainingjob import (
    ATTEMPTS,
    CLAIM,
    KINDS,
    NODE_DIR,
    PROFILE_DIR,
    RANK_TABLE_CONFIG_MAP,
    REPORT,
    RESULTS,
    STATE,
    SUMMARY,
    UNREADABLE,
    VERDICT,
    TrainingJob,
    claim_text,
    parse_training_job,
)
from cluster_run.errors import ClusterError, ExitCode, InputError, in_words, worst
from cluster_run.ids import SUSPECTS
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, RANK_TABLE_NAME, REPORT_NAME
from cluster_run.ranktable import read_rank_table
from cluster_tell.outcome import Outcome

#: Outcome of a job: `later` data may still be written, or there was no time left; `elsewhere` another
#: sweep has it; `retried` it failed and gets another attempt; `unreadable` its data wait for rights;
#: `fetched` whole files of its suspects came, or could not.
SweptState = Literal["done", "failed", "retried", "later", "elsewhere", "unreadable", "fetched"]

#: Annotations of one object share 256 KiB; a summary needs far less.
_MAX_SUMMARY = 1000
WORDING = Wording(
    own_directory=f"let each job write to a directory of its own, {PROFILE_DIR}: jobs/NAME",
    on_nodes=f"on its nodes' own disks: the annotation {NODE_DIR}",
    nodes_unknown=f"no rank table says which hosts it had: {RANK_TABLE_CONFIG_MAP}",
)


@dataclass(frozen=True)
class SweepOptions:
    """How to sweep. Times are seconds; `holder` names this sweep in its claims.

    Data are read `settle_s` after their last change, or `patience_s` after the job's end at the latest. The
    sweep begins no job that might not end within `time_s` of its own start. People reach the results at
    `results_url`, where it is not empty. `node_exchange` is the directory shared with the collectors
    on the nodes, None where there are none; one that is silent for `node_patience_s` is given up.
    """

    namespace: str
    selector: str
    profiles: Path
    results: Path
    holder: str
    follow: FollowOptions
    n_attempts: int = 3
    settle_s: float = 60.0
    patience_s: float = 3600.0
    time_s: float = 480.0
    results_url: str = ""
    node_exchange: Path | None = None
    node_patience_s: float = 900.0


@dataclass(frozen=True)
class Swept:
    """Outcome of one job."""

    job: str
    state: SweptState
    text: str
    outcome: Outcome | None = None


def sweep(api: ApiClient, options: SweepOptions, report: Callable[[Swept], None]) -> tuple[Swept, ...]:
    """Process all jobs once; `report` is called for each as it ends.

    Raises:
        InputError: the profile volume is not there; no job is looked at.
        ApiError: the jobs cannot be listed, or one of them not be annotated; all others are processed before.
    """
    if not options.profiles.is_dir():
        raise InputError(
            f"{options.profiles}: the profile volume is not there", "mount it, or correct --profiles"
        )
    end_s = time.monotonic() + options.time_s
    swept = []
    refusals: list[ApiError] = []
    no_tables = ""
    forget_older(options.node_exchange, time.time())
    for job in _jobs(api, options, report, refusals):
        if not job.is_settled and not no_tables:
            no_tables = keep_rank_table(api, job, _work_dir(job, options))
            if no_tables:
                report(Swept("configmaps", "failed", no_tables))
        remember_nodes(api, job, _work_dir(job, options))
        if job.is_settled or (job.state == "running" and job.is_deleted):
            release(api, job)
            continue
        if job.state == "running":
            hold(api, job)
            continue
        try:
            one = _sweep_one(api, job, options, end_s)
        except ApiError as error:
            if error.status == 0:
                raise  # the server is gone, for all of them
            refusals.append(error)
            one = Swept(job.label, "failed", str(error))
        report(one)
        swept.append(one)

    # Last, since copying may take long.
    raw = bring_raw(options.node_exchange, options.results, time.time(), options.node_patience_s)
    for job_dir, text in raw:
        report(Swept(job_dir, "fetched", text))
    if refusals:
        raise refusals[0]
    return tuple(swept)


def _jobs(
    api: ApiClient, options: SweepOptions, report: Callable[[Swept], None], refusals: list[ApiError]
) -> Iterator[TrainingJob]:
    for kind in KINDS:
        try:
            for item in api.list(kind.path(options.namespace), options.selector):
                with contextlib.suppress(InputError):
                    yield parse_training_job(kind, item)
        except ApiError as error:
            # A cluster without Volcano or the Ascend Operator has no such jobs; that is no error.
            if error.status == 404:
                continue
            if error.status == 0:
                raise
            report(Swept(kind.plural, "failed", str(error)))
            # It may be right that a role leaves out kinds that nobody uses.
            if error.status != 403 or kind == KINDS[0]:
                refusals.append(error)


def _sweep_one(api: ApiClient, job: TrainingJob, options: SweepOptions, end_s: float) -> Swept:
    now_s = time.time()
    if job.n_attempts >= options.n_attempts and not job.is_claimed(now_s):
        # Its sweeps died without an end, or one of them would have given it up.
        return _conclude(
            api, job, options, failed(_finished(job, options), None, "every sweep died on it"), job.n_attempts
        )
    why_not = _why_not_now(job, options, now_s, end_s)
    if why_not is not None:
        return why_not
    if (unreadable := _why_unreadable(job, options, now_s)) != "":
        return _tell_unreadable(api, job, options, unreadable)
    claimed = _claim(api, job, options, now_s)
    if claimed is None:
        return Swept(job.label, "elsewhere", "another sweep took it, or it is gone")
    try:
        outcome = _follow(claimed, options)
    except BaseException:
        # Stopped: give the job back, uncounted. Should that fail as well, the claim expires.
        annotations = {CLAIM: None, ATTEMPTS: str(job.n_attempts), STATE: None}
        with contextlib.suppress(ClusterError):
            api.merge_patch(job.path, {"metadata": {"uid": job.uid, "annotations": annotations}})
        raise
    return _conclude(api, claimed, options, outcome, claimed.n_attempts)


def _why_not_now(job: TrainingJob, options: SweepOptions, now_s: float, end_s: float) -> Swept | None:
    """Return why a later sweep, or another one, looks at the job; None where it is ours."""
    if job.is_claimed(now_s):
        return Swept(job.label, "elsewhere", "another sweep works on it")
    if is_being_written(job, options.profiles, now_s, options.settle_s, options.patience_s):
        return Swept(job.label, "later", "it ended a moment ago; its ranks may still be writing")
    if end_s - time.monotonic() < options.follow.deadline_s:
        return Swept(job.label, "later", "no time left in this sweep")
    where = (options.node_exchange, _work_dir(job, options))
    if (waiting := wait_for_nodes(job, *where, now_s, options.node_patience_s)) != "":
        return Swept(job.label, "later", waiting)
    return None


def _why_unreadable(job: TrainingJob, options: SweepOptions, now_s: float) -> str:
    """Return why not all data can be read; empty if they can, or if it was not repaired for long."""
    is_told = job.annotations.get(STATE) == UNREADABLE
    if is_told and job.finished_s is not None and now_s - job.finished_s > options.patience_s:
        return ""
    with contextlib.suppress(InputError, OSError):
        top = Path(profile_directory(job, options.profiles).partition("%N")[0])
        return why_unreadable(top) if top.is_dir() else ""
    return ""


def _tell_unreadable(api: ApiClient, job: TrainingJob, options: SweepOptions, why: str) -> Swept:
    """Write on the job what to do; it is looked at again by every sweep, and no attempt is counted."""
    if job.annotations.get(STATE) == UNREADABLE:
        return Swept(job.label, "unreadable", why)
    outcome = failed(_finished(job, options), None, why)
    annotations = {STATE: UNREADABLE, SUMMARY: outcome.line[:_MAX_SUMMARY], VERDICT: "unknown"}
    with contextlib.suppress(ApiError):
        api.merge_patch(job.path, {"metadata": {"uid": job.uid, "annotations": annotations}})
    return Swept(job.label, "unreadable", outcome.line, outcome)


def _claim(api: ApiClient, job: TrainingJob, options: SweepOptions, now_s: float) -> TrainingJob | None:
    claim = claim_text(options.holder, int(now_s + options.time_s) + 60)
    annotations = {CLAIM: claim, ATTEMPTS: str(job.n_attempts + 1), STATE: "claimed"}
    try:
        item = api.merge_patch(
            job.path, {"metadata": {"resourceVersion": job.version, "annotations": annotations}}
        )
    except ApiError as error:
        if error.status in (404, 409):
            return None
        raise
    return parse_training_job(job.kind, item)


def _follow(job: TrainingJob, options: SweepOptions) -> Outcome:
    finished = _finished(job, options)
    if NODE_DIR in job.annotations:
        return _follow_nodes(job, finished, options)
    try:
        profile_dir = profile_directory(job, options.profiles)
        refuse_links_out(Path(profile_dir.partition("%N")[0]), options.profiles)
    except InputError as error:
        return failed(finished, None, str(error), is_permanent=True)
    rank_table = finished.work_dir / RANK_TABLE_NAME
    request = ProfileRequest(
        profile_dir=profile_dir,
        results=finished.work_dir / ANALYSIS_OUTPUT_NAME,
        via="shared",
        rank_table=rank_table if rank_table.is_file() else None,
        wording=WORDING,
    )
    return follow(replace(finished, uid=owner_of(profile_dir)), request, options.follow)


def _follow_nodes(job: TrainingJob, finished: ReportedJob, options: SweepOptions) -> Outcome:
    """Follow a job whose data came from the disks of its nodes."""
    asked = asked_directory(job, options.node_exchange)
    try:
        run, missing = assemble(job, asked, finished.work_dir, options.node_patience_s)
    except (ClusterError, OSError) as error:
        return failed(finished, None, in_words(error))
    results = finished.work_dir / ANALYSIS_OUTPUT_NAME
    request = ProfileRequest(str(run), results, "shared", None, wording=WORDING)
    # Temporary files lie beside the parts, and are removed with them.
    finished_here = replace(finished, work_dir=run.parent, uid=owner_of(str(run)))
    outcome = follow(finished_here, request, options.follow)
    if options.follow.keep_raw == SUSPECTS:
        outcome = with_raw_asked(outcome, asked, str(finished.work_dir.relative_to(options.results)))
    if not missing or outcome.state == "failed":
        return outcome
    return replace(outcome, code=worst(outcome.code, ExitCode.INCOMPLETE), reason=missing)


def _finished(job: TrainingJob, options: SweepOptions) -> ReportedJob:
    table = _work_dir(job, options) / RANK_TABLE_NAME
    nodes: tuple[str, ...] | None = None
    with contextlib.suppress(InputError):
        nodes = tuple(read_rank_table(table).server_ids)
    return ReportedJob(
        job=job.name,
        name="",
        user="",
        state=job.state,
        nodes=nodes,
        work_dir=_work_dir(job, options),
        comment="",
        began_s=job.began_s,
        ended_s=job.finished_s,
    )


def _work_dir(job: TrainingJob, options: SweepOptions) -> Path:
    # The uid keeps apart two jobs that had one name after another. Names are DNS labels: safe in a path.
    return options.results / job.namespace / f"{job.name}-{job.uid[:8]}"


def _conclude(
    api: ApiClient, job: TrainingJob, options: SweepOptions, outcome: Outcome, n_attempts: int
) -> Swept:
    if outcome.state != "failed":
        state: SweptState = "done"
    else:
        state = "failed" if outcome.is_permanent or n_attempts >= options.n_attempts else "retried"
    annotations: dict[str, Any] = {
        CLAIM: None,
        STATE: "retry" if state == "retried" else state,
        SUMMARY: outcome.line[:_MAX_SUMMARY],
        VERDICT: outcome.verdict.verdict if outcome.verdict else "unknown",
    }
    if outcome.verdict is not None and outcome.results is not None:
        annotations[RESULTS] = str(outcome.results.relative_to(options.results))
        if options.results_url:
            annotations[REPORT] = f"{options.results_url.rstrip('/')}/{annotations[RESULTS]}/{REPORT_NAME}"
    try:
        item = api.merge_patch(job.path, {"metadata": {"uid": job.uid, "annotations": annotations}})
        if state != "retried":
            if (asked := asked_directory(job, options.node_exchange)) is not None:
                forget(asked)
            release(api, parse_training_job(job.kind, item))
    except ApiError as error:
        # The results are there. A job that was deleted meanwhile needs no annotation.
        if error.status not in (404, 409):
            return Swept(
                job.label, "retried", f"{outcome.line} The job could not be annotated: {error}", outcome
            )
    return Swept(job.label, state, outcome.line, outcome)
