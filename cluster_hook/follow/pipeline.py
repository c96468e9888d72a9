"""Follows one job: collect where needed, analyse, read the verdict, tell."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster_analysis.findings_json import read_document
from cluster_hook.follow.captures import NoProfileError, captures_of, wait_until_parsed
from cluster_hook.follow.dask_allocation import AllocationError, dask_in_allocation
from cluster_hook.follow.file_systems import is_shared_between_hosts
from cluster_hook.follow.fleet import remember
from cluster_hook.follow.inventory import (
    HostDefaults,
    inventory_text,
    rank_table_of_job,
    resolve_addresses,
    server_ids_of,
)
from cluster_hook.follow.view import View, write_view
from cluster_hook.isolation import no_wider_than, our_command, refuse_as_root
from cluster_hook.job import ProfileRequest, ReportedJob
from cluster_hook.processes import CommandEnd, run_command
from cluster_run.errors import ClusterError, ExitCode, InputError, UsageError, in_words, worst
from cluster_run.files import write_text_whole
from cluster_run.findings import FindingsDocument
from cluster_run.host_names import HostNames
from cluster_run.ids import SUSPECTS
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME, PROFILER_TREE_NAME
from cluster_tell.metrics import write_metrics
from cluster_tell.outcome import OUTCOME_NAME, Outcome, outcome_text, without_names
from cluster_tell.verdict import verdict_of

#: The scheduler that the hook starts by itself, on the nodes of the post-job.
IN_ALLOCATION = "srun"
INVENTORY_NAME = "hosts.yaml"
_NODE_PATIENCE_S = 600.0
#: Nobody calls the collector again: each host has all of its time, but the end, which is the manifest's.
_COLLECTING_SHARE = 0.9


@dataclass(frozen=True)
class FollowOptions:
    """How to follow a job. `scheduler` and `fail_on` are cluster-analyse's, `what` is cluster-collect's.

    `keep_raw` are ranks whose files are fetched whole, or `suspects`: those of the findings, after the
    analysis. `collect_more` are further options of cluster-collect.

    With the scheduler `srun` Dask runs on the nodes of the post-job and talks over `dask_interface`.
    `deadline_s` is what each process may take: collecting, analysing, fetching suspects.
    `shows_report` passes the analysis' own words on to stdout.
    """

    scheduler: str = "auto"
    fail_on: str = "never"
    dask_interface: str = ""
    shows_addresses: bool = False
    what: tuple[str, ...] = ("columns",)
    keep_raw: str = ""
    collect_more: tuple[str, ...] = ()
    host_defaults: HostDefaults | None = None
    deadline_s: float = 3600.0
    shows_report: bool = True


@dataclass(frozen=True)
class RunPlan:
    """Input of the analysis, place of its results, and the work before it: collect, link, or nothing.

    `names` are those of the hosts, as they are numbered in the run.
    """

    run: Path
    results: Path
    inventory: str = ""
    view: View | None = None
    names: HostNames = field(default_factory=lambda: HostNames([]), compare=False)


def plan_run(job: ReportedJob, request: ProfileRequest, defaults: HostDefaults) -> RunPlan:
    """Decide how the data of `job` are reached.

    Data on a shared file system are read where they are; `cluster-run-<job>` in the work directory then
    holds links, where hosts or a rank table have to be said. Data on the nodes' own disks are collected
    into it.

    Raises:
        UsageError: the file that the job names as rank table is none.
        InputError: the rank table cannot be read, or the job's nodes are unknown.
    """
    shared = request.via == "shared" or (request.via == "auto" and _is_shared(job, request))
    table = rank_table_of_job(request.rank_table) if request.rank_table else None
    if shared and not request.is_per_node and table is None:
        run = Path(request.profile_dir)
        return RunPlan(
            run, request.results or run / ANALYSIS_OUTPUT_NAME, names=HostNames([], job.nodes or ())
        )
    run = job.work_dir / f"cluster-run-{job.job}"
    results = request.results or run / ANALYSIS_OUTPUT_NAME
    if shared and not request.is_per_node and request.rank_table and table:
        view = View(table.server_ids, data=Path(request.profile_dir), rank_table=request.rank_table)
        names = HostNames([(one,) for one in table.server_ids], job.nodes or ())
        return RunPlan(run, results, view=view, names=names)
    if job.nodes is None:
        raise InputError(
            f"job {job.job}: {request.wording.nodes_unknown}",
            "collect from them by hand: cluster-collect --hosts NODES, then cluster-analyse",
        )
    server_ids = server_ids_of(job.nodes, table, resolve_addresses)
    if shared:
        directories = tuple(Path(request.profile_dir.replace("%N", node)) for node in job.nodes)
        view = View(server_ids, directories, None, request.profile_dir, request.rank_table)
        return RunPlan(
            run, results, view=view, names=HostNames(list(zip(job.nodes, server_ids, strict=True)))
        )
    by_steps = {"transport": "srun"} if request.via == "srun" else {}
    text = inventory_text(
        job.nodes, server_ids, request.profile_dir, request.rank_table, {**defaults, **by_steps}
    )
    addresses = [
        (node, server_id, *resolve_addresses(node))
        for node, server_id in zip(job.nodes, server_ids, strict=True)
    ]
    return RunPlan(run, results, inventory=text, names=HostNames(addresses))


def readable_at(job: ReportedJob, request: ProfileRequest) -> Path:
    """Return the directory that says who may read the job's data, as far as it is seen from here."""
    profile_dir = Path(request.profile_dir.partition("%N")[0])
    return profile_dir if profile_dir.is_dir() else job.work_dir


def _is_shared(job: ReportedJob, request: ProfileRequest) -> bool:
    """Whether the data lie where every node sees them: in the work directory, or on the network.

    That two paths are on one device says nothing: `/home` and `/data` of a node's own disk are as well.
    """
    profile_dir = Path(request.profile_dir.partition("%N")[0])
    return profile_dir.is_relative_to(job.work_dir) or is_shared_between_hosts(profile_dir)


def follow(job: ReportedJob, request: ProfileRequest, options: FollowOptions) -> Outcome:
    """Collect and analyse the data of one job; a failure is an outcome with a reason."""
    if job.nodes is not None and not job.nodes:
        return nothing_to_do(job, "it never started, so there is nothing to read")
    results: Path | None = None
    names = HostNames([], job.nodes or ())
    try:
        # Here, because everything that reads a job's data passes here.
        refuse_as_root(job.uid)
        plan = plan_run(job, request, options.host_defaults or {})
        results, names = plan.results, plan.names
        with no_wider_than(readable_at(job, request), results):
            outcome = _carry_out(job, request, plan, options)
    except NoProfileError as error:
        # Results that are there already are another job's.
        outcome = failed(job, None, str(error))
    except (ClusterError, OSError) as error:
        outcome = failed(job, results, in_words(error), is_permanent=isinstance(error, UsageError))
    if not options.shows_addresses:
        outcome = without_names(outcome, names)
    if outcome.results is not None:
        # A full or read-only disk must not hide the reason: the line in the log still has it.
        with contextlib.suppress(OSError), no_wider_than(readable_at(job, request), outcome.results):
            write_text_whole(outcome.results / OUTCOME_NAME, outcome_text(outcome))
    return outcome


def nothing_to_do(job: ReportedJob, reason: str) -> Outcome:
    """Return the outcome of a job that rightly gets no analysis."""
    return Outcome(job.called, job.name, job.state, "nothing", ExitCode.DONE, reason=reason)


def not_ended(job: ReportedJob) -> Outcome:
    """Return the outcome of a job that runs, or will run again because it was requeued."""
    reason = "it has not ended, so it is not analysed yet"
    return Outcome(job.called, job.name, job.state, "waiting", ExitCode.FAILED, reason=reason)


def _carry_out(job: ReportedJob, request: ProfileRequest, plan: RunPlan, options: FollowOptions) -> Outcome:
    collected, missing = ExitCode.DONE, ""
    if plan.inventory:
        end = _collect(plan, request, options)
        if end.code not in (ExitCode.DONE, ExitCode.INCOMPLETE):
            # Data collected before the failure is analysed all the same.
            if not (plan.run / PROFILER_TREE_NAME).is_dir():
                return failed(job, plan.results, end.reason + _why_collected(request))
            missing = end.reason
        collected = ExitCode.DONE if end.code == ExitCode.DONE else ExitCode.INCOMPLETE
    elif plan.view is not None:
        write_view(plan.view, plan.run)
    elif not plan.run.is_dir():
        reason = (
            f"there is no directory {plan.run}; the job wrote no profile, or elsewhere "
            f"({request.wording.on_nodes})"
        )
        return failed(job, None, reason)
    run = plan.run
    if not plan.inventory:
        wait_until_parsed(run)
    if not request.is_own:
        run = captures_of(job, run, job.work_dir / f"cluster-captures-{job.job}", request.wording)
    end = _analyse(job, replace(plan, run=run), options)
    if end.code not in (ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.FINDINGS):
        return failed(job, plan.results, end.reason)
    document = read_document(plan.results / FINDINGS_NAME)
    remember(job, run, plan.results)
    if plan.inventory and options.keep_raw == SUSPECTS:
        fetched = _fetch_suspects(job, request, plan, options)
        if fetched.code != ExitCode.DONE:
            collected = ExitCode.INCOMPLETE
            why = fetched.reason if fetched.code != ExitCode.INCOMPLETE else "not all of them came"
            missing = "; ".join(filter(None, (missing, f"raw files of the suspects: {why}")))
    return Outcome(
        job.called,
        job.name,
        job.state,
        "analysed",
        worst(ExitCode(end.code), collected),
        plan.results,
        verdict_of(document),
        missing,
        _metrics(document, plan.results),
    )


def _why_collected(request: ProfileRequest) -> str:
    if request.via != "auto":
        return ""
    return (
        "; its directory is not on a network file system, so it was looked for on the nodes "
        "(where all nodes see it: profile_via=shared in the job's comment)"
    )


def _metrics(document: FindingsDocument, results: Path) -> str:
    # Findings without metrics are better than neither.
    try:
        return write_metrics(document, results)
    except (ClusterError, OSError) as error:
        print(f"cluster-hook: no metrics: {in_words(error)}", file=sys.stderr)
        return ""


def _analyse(job: ReportedJob, plan: RunPlan, options: FollowOptions) -> CommandEnd:
    if options.scheduler != IN_ALLOCATION:
        return _analyse_with(plan, options, (f"--scheduler={options.scheduler}",))
    try:
        with dask_in_allocation(job.work_dir, options.dask_interface) as where:
            return _analyse_with(plan, options, where)
    except AllocationError as error:
        # A slower analysis is better than none.
        print(f"cluster-hook: {error}; analysing on this node alone", file=sys.stderr)
        return _analyse_with(plan, options, ())


def _analyse_with(plan: RunPlan, options: FollowOptions, where: tuple[str, ...]) -> CommandEnd:
    command = our_command(
        "cluster_analysis",
        str(plan.run),
        f"--output={plan.results}",
        f"--fail-on={options.fail_on}",
        *(["--show-addresses"] if options.shows_addresses else []),
        *where,
    )
    return run_command(
        command,
        name="cluster-analyse",
        deadline_s=options.deadline_s,
        capture=not options.shows_report,
        rewritten=_rewriting(plan, options),
    )


def _rewriting(plan: RunPlan, options: FollowOptions) -> Callable[[str], str]:
    """Return the function that turns a command's line into what the log may hold."""
    return str if options.shows_addresses else plan.names.hidden


def _collect(plan: RunPlan, request: ProfileRequest, options: FollowOptions) -> CommandEnd:
    path = plan.run.with_name(plan.run.name + "." + INVENTORY_NAME)
    write_text_whole(path, plan.inventory)
    where = ("--inventory", str(path), "--output", str(plan.run), *_patience(request))
    return _run_collect((*where, *collect_arguments(options)), plan, options)


def collect_arguments(options: FollowOptions) -> tuple[str, ...]:
    """Return the arguments of cluster-collect beside hosts and directory."""
    now = options.keep_raw if options.keep_raw != SUSPECTS else ""
    return (
        *(f"--what={one}" for one in options.what),
        *([f"--keep-raw={now}"] if now else []),
        *options.collect_more,
    )


def _fetch_suspects(
    job: ReportedJob, request: ProfileRequest, plan: RunPlan, options: FollowOptions
) -> CommandEnd:
    """Fetch all files of the ranks that the findings name, and of peers to compare them with."""
    # Captures of other jobs in the same directory are known only if they ended before.
    since = [] if request.is_own or job.began_s is None else [f"--since=@{job.began_s:.0f}"]
    findings = plan.results / FINDINGS_NAME
    which = (
        *(f"--like={plan.run}", f"--ranks={SUSPECTS}", f"--findings={findings}", "--what=full", *since),
        *_patience(request),
    )
    return _run_collect((*which, *options.collect_more), plan, options)


def _patience(request: ProfileRequest) -> tuple[str, ...]:
    """The next job may hold a node already, and the one that has just ended for a moment."""
    return (f"--connect-deadline={_NODE_PATIENCE_S:g}",) if request.via == "srun" else ()


def unattended(deadline_s: float) -> tuple[str, ...]:
    """Return the arguments of a collector that has `deadline_s` for all hosts and is not called again."""
    return ("--host-deadline=none", f"--deadline={_COLLECTING_SHARE * deadline_s:g}")


def _run_collect(arguments: Sequence[str], plan: RunPlan, options: FollowOptions) -> CommandEnd:
    # Only it knows the names of hosts in the configuration of ssh.
    hiding = [] if options.shows_addresses else ["--hide-addresses"]
    return run_command(
        our_command("cluster_collect", *unattended(options.deadline_s), *arguments, *hiding),
        name="cluster-collect",
        deadline_s=options.deadline_s,
        capture=True,
        rewritten=_rewriting(plan, options),
    )


def failed(job: ReportedJob, results: Path | None, reason: str, *, is_permanent: bool = False) -> Outcome:
    """Return the outcome of a job that could not be collected or analysed."""
    code: ExitCode = ExitCode.FAILED
    return Outcome(
        job.called, job.name, job.state, "failed", code, results, reason=reason, is_permanent=is_permanent
    )
