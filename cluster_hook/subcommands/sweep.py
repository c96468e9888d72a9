"""The subcommand for Kubernetes: sweep."""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import replace
from functools import partial

from cluster_hook.kubernetes.api import ApiAccess, ApiClient, access_from_pod, namespace_from_pod
from cluster_hook.kubernetes.sweep import SweepOptions, Swept, sweep
from cluster_hook.options import add_analyse_arguments, add_tell_arguments, follow_options, tell_options
from cluster_hook.subcommands.json_lines import add_json, print_ended, print_trouble
from cluster_run.command_line import Commands, add_valued, named_path, number_above_0, positive_number
from cluster_run.errors import ExitCode, UsageError
from cluster_run.ids import SUSPECTS
from cluster_tell.metrics import prune_metrics
from cluster_tell.teller import Teller

DEFAULT_SELECTOR = "cluster-hook/enabled=true"
#: One job may take this long: several fit into one sweep.
_JOB_DEADLINE_S = 240.0


def add_sweep(commands: Commands) -> None:
    """Add `sweep`."""
    parser = commands.add_parser(
        "sweep",
        help="analyse the Kubernetes jobs that ended; this is what the CronJob runs",
        description="Analyses each training job (batch Job, Volcano job, AscendJob) that carries the label "
        "and has ended, and annotates it with the verdict. The exit code is the sweep's, not the jobs'.",
    )
    parser.add_argument(
        "--profiles", type=named_path, required=True, metavar="DIR", help="the volume with the data"
    )
    parser.add_argument(
        "--results", type=named_path, required=True, metavar="DIR", help="the volume for the results"
    )
    parser.add_argument("--namespace", default="", help="default: the pod's own")
    add_valued(parser, "--selector", str, DEFAULT_SELECTOR, "LABELS", "which jobs")
    add_valued(
        parser, "--attempts", positive_number, SweepOptions.n_attempts, "N", "how often a job is tried"
    )
    settled = "seconds without a change before data are read"
    add_valued(parser, "--settle", number_above_0, SweepOptions.settle_s, "S", settled)
    limit = "begin no job that might not end by then"
    add_valued(parser, "--time-limit", number_above_0, SweepOptions.time_s, "S", limit)
    parser.add_argument(
        "--results-url",
        default="",
        metavar="URL",
        help="where people reach the results volume; the job is annotated with its report's address",
    )
    parser.add_argument(
        "--node-exchange",
        type=named_path,
        metavar="DIR",
        help="the directory shared with the collectors on the nodes, for data on the nodes' own disks",
    )
    silent = "go on without a node whose collector is silent for this time"
    add_valued(parser, "--node-patience", number_above_0, SweepOptions.node_patience_s, "S", silent)
    parser.add_argument(
        "--keep-raw",
        choices=(SUSPECTS,),
        default="",
        help="with --node-exchange: after the verdict fetch everything of the ranks that the findings name, "
        "and of peers to compare with; a later sweep lays it beside the results, in `raw`",
    )
    parser.add_argument(
        "--api-server",
        metavar="URL",
        help="outside of a pod: what `kubectl proxy` listens on (default: the pod's)",
    )
    add_analyse_arguments(parser)
    add_tell_arguments(parser)
    add_json(parser, "a job")
    parser.set_defaults(run=_sweep, deadline=_JOB_DEADLINE_S)


def _sweep(arguments: argparse.Namespace) -> ExitCode:
    telling = tell_options(arguments)
    namespace = arguments.namespace or namespace_from_pod()
    if not namespace:
        raise UsageError("no namespace: this is no pod", "name one with --namespace")
    if arguments.deadline > arguments.time_limit:
        raise UsageError("--deadline is longer than --time-limit, so no job would ever be begun")
    access = ApiAccess(arguments.api_server) if arguments.api_server else access_from_pod(os.environ)
    options = SweepOptions(
        namespace=namespace,
        selector=arguments.selector,
        profiles=arguments.profiles,
        results=arguments.results,
        holder=f"{platform.node()}-{os.getpid()}",
        follow=replace(follow_options(arguments), shows_report=False),
        n_attempts=arguments.attempts,
        settle_s=arguments.settle,
        time_s=arguments.time_limit,
        results_url=arguments.results_url,
        node_exchange=arguments.node_exchange,
        node_patience_s=arguments.node_patience,
    )

    def report(swept: Swept) -> None:
        print_ended(arguments, "swept", swept.outcome, swept.state, swept.text, job=swept.job)
        if swept.outcome is not None and swept.state in ("done", "failed", "unreadable"):
            teller.tell(swept.job, swept.outcome)

    if telling.prometheus_dir is not None:
        prune_metrics(telling.prometheus_dir)
    with Teller(telling, partial(print_trouble, arguments)) as teller:
        sweep(ApiClient(access), options, report)
    return ExitCode.DONE
