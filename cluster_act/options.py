"""The command line of `cluster-act`."""

from __future__ import annotations

import argparse
import os

from cluster_act.values import NodeNames
from cluster_act.ways.mindcluster import MindCluster
from cluster_act.ways.registry import WAYS
from cluster_run.command_line import (
    Parser,
    add_about,
    add_language,
    add_valued,
    exit_codes_help,
    named_path,
    positive_number,
)
from cluster_run.errors import ExitCode
from cluster_run.layout import FLEET_VARIABLE

_CODES = {
    ExitCode.DONE: "nothing to do, or all of it is done",
    ExitCode.FINDINGS: "there is something to do (without --apply); the suspect is slow (--probe)",
    ExitCode.INCOMPLETE: "a part could not be done, or nothing can be told; the probe leaves it open",
}


def _node_names(text: str) -> NodeNames:
    if "{host}" not in text and "{short}" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} holds neither {{host}} nor {{short}}")
    return NodeNames(text)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = Parser(
        prog="cluster-act",
        description="Says what is to be done about slow devices and hosts, and does it with --apply.",
        epilog=exit_codes_help(_CODES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_about(parser)
    what = parser.add_argument_group("what to act on")
    what.add_argument(
        "run", type=named_path, nargs="?", metavar="RUN", help="the devices and hosts of this run's alarms"
    )
    what.add_argument("--fleet", action="store_true", help="devices and hosts that are slow over many runs")
    what.add_argument("--undo", metavar="NODE", help="undo what was done to a node, or to `all`")
    what.add_argument("--log", action="store_true", help="show all actions")
    what.add_argument(
        "--probe", nargs=2, metavar=("DEVICE", "CONTROL"), help="compare two devices: node017:5 node018:5"
    )
    parser.add_argument(
        "--db",
        default=os.environ.get(FLEET_VARIABLE, ""),
        metavar="DB",
        help=f"the fleet's database, which keeps the log of actions; ${FLEET_VARIABLE} by default",
    )
    add_language(parser, ", not of the log")
    how = parser.add_argument_group("how")
    how.add_argument("--way", choices=tuple(WAYS), default="slurm", help="default: %(default)s")
    how.add_argument(
        "--node-name", type=_node_names, default=NodeNames("{host}"), metavar="TEXT",
        help="names of nodes there: {host} is the host's own name, {short} that name up to the first dot "
        "(default: {host})",
    )  # fmt: skip
    how.add_argument("--apply", action="store_true", help="do it")
    add_valued(how, "--budget", positive_number, 2, "N", "nodes a day")
    how.add_argument("--unconfirmed", action="store_true", help="one run is enough")
    how.add_argument(
        "--drain-busy", action="store_true", help="slurm: also nodes on which jobs run, which end first"
    )
    how.add_argument(
        "--exclude-file", type=named_path, metavar="FILE", help="keep a list of the nodes acted on"
    )
    how.add_argument(
        "--sender", default=MindCluster.sender, metavar="NAME", help="mindcluster: the fault's sender"
    )
    how.add_argument(
        "--namespace", default=MindCluster.namespace, help="mindcluster: namespace of the ConfigMap"
    )
    how.add_argument(
        "--customization", type=named_path, metavar="FILE", default=MindCluster.customization,
        help="mindcluster: the site's publicCustomization.json",
    )  # fmt: skip
    how.add_argument(
        "--command",
        default="",
        metavar="LINE",
        help="command: the command line that is called with apply or undo",
    )
    probe = parser.add_argument_group("the probe")
    probe.add_argument(
        "--probe-command",
        default="",
        metavar="LINE",
        help="command that prints a time last; {device} is the device's number",
    )
    probe.add_argument("--ssh", default="ssh -o BatchMode=yes", metavar="LINE", help="how nodes are reached")
    add_valued(probe, "--seconds", positive_number, 120, "S")
    return parser
