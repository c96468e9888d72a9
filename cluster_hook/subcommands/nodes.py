"""The subcommand that runs on every node of a Kubernetes cluster: node-collect."""

from __future__ import annotations

import argparse
import os
import time

from cluster_hook.kubernetes.node_collector import CollectorOptions, collect_asked
from cluster_hook.kubernetes.node_exchange import is_node_name
from cluster_hook.options import LANGUAGE_OF_TEXT
from cluster_hook.subcommands.json_lines import add_json, print_line, say_on_stderr
from cluster_run.command_line import Commands, add_language, add_valued, named_path, number_above_0
from cluster_run.errors import ExitCode, UsageError, in_words
from cluster_run.standard_streams import as_log

#: Group and owner alike: the sweep, which removes what was collected, may be another user of the group.
_UMASK = 0o002


def add_node_collect(commands: Commands) -> None:
    """Add `node-collect`."""
    parser = commands.add_parser(
        "node-collect",
        help="collect what Kubernetes jobs left on this node's own disk; this is what the DaemonSet runs",
        description="Copies the profiles that a sweep asks for from this node to the exchange directory, "
        "which sweep and nodes share. It needs no access to the API.",
    )
    parser.add_argument(
        "--node", default=os.environ.get("NODE_NAME", ""), help="this node's name (default: $NODE_NAME)"
    )
    parser.add_argument(
        "--profiles",
        type=named_path,
        required=True,
        metavar="DIR",
        help="where the node's directory is mounted",
    )
    parser.add_argument(
        "--exchange", type=named_path, required=True, metavar="DIR", help="the sweep's --node-exchange"
    )
    parser.add_argument(
        "--what",
        default=CollectorOptions.what,
        help="what to collect, as cluster-collect takes it (default: %(default)s)",
    )
    add_valued(parser, "--every", number_above_0, 10.0, "S", "seconds between two looks for requests")
    add_valued(
        parser,
        "--deadline",
        number_above_0,
        CollectorOptions.deadline_s,
        "S",
        "seconds that one job may take",
    )
    parser.add_argument("--once", action="store_true", help="look once, and end")
    add_language(parser, LANGUAGE_OF_TEXT, argparse.SUPPRESS)
    add_json(parser, "a job")
    parser.set_defaults(run=_node_collect)


def _node_collect(arguments: argparse.Namespace) -> ExitCode:
    if not is_node_name(arguments.node):
        raise UsageError(f"{arguments.node!r} is no name of a node", "give --node, or set NODE_NAME")
    os.umask(_UMASK)
    options = CollectorOptions(
        node=arguments.node,
        profiles=arguments.profiles,
        exchange=arguments.exchange,
        what=arguments.what,
        deadline_s=arguments.deadline,
    )

    def report(job: str, reason: str) -> None:
        with as_log():
            values = {"job": job, "node": arguments.node, "reason": reason}
            print_line(arguments, f"{job}: {reason or 'collected'}", "node-collected", **values)

    while True:
        try:
            collect_asked(options, report)
        except OSError as error:
            if arguments.once:
                raise
            # A volume that is away for a moment comes back.
            say_on_stderr(arguments, in_words(error))
        if arguments.once:
            return ExitCode.DONE
        time.sleep(arguments.every)
