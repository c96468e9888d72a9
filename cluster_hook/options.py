"""The options that several subcommands share, and the frozen values made of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from cluster_hook.checks import check_follow_options
from cluster_hook.follow.inventory import read_defaults
from cluster_hook.follow.pipeline import FollowOptions
from cluster_run.command_line import add_language, add_valued, language_of, named_path, number_above_0
from cluster_run.findings import FAILING
from cluster_tell.formats import FORMATS
from cluster_tell.teller import TELL_WHEN, TellOptions
from cluster_tell.webhook import URL_VARIABLE, find_webhook

_FOLLOW = FollowOptions()
_TELL = TellOptions()
_HOUR_S = 3600.0
#: What `--lang` is the language of.
LANGUAGE = " of messages and of the line in the job's log"
LANGUAGE_OF_TEXT = ", not of JSON"


def add_analyse_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a job is analysed."""
    group = parser.add_argument_group("analysing")
    where = "where the analysis runs, as cluster-analyse takes it: auto, processes, slurm, tls://…"
    where += "; or srun, with --post-nodes"
    add_valued(group, "--scheduler", str, _FOLLOW.scheduler, "WHERE", where)
    group.add_argument(
        "--show-addresses", action="store_true", help="real host names in the results, not only their numbers"
    )
    group.add_argument(
        "--fail-on",
        choices=tuple(FAILING),
        default=_FOLLOW.fail_on,
        help="end with code 4 when there is such a finding",
    )
    longest = "seconds that one job may take to analyse, and as many to collect and to fetch raw files"
    add_valued(group, "--deadline", number_above_0, _FOLLOW.deadline_s, "S", longest)
    parser.set_defaults(**_values_of(add_collect_arguments))


def add_collect_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how data on the nodes' own disks are collected, and Slurm's own scheduler."""
    group = parser.add_argument_group("collecting")
    group.add_argument(
        "--what",
        action="append",
        default=[],
        metavar="WHAT",
        help="what to collect, as cluster-collect takes it; may be repeated (default: columns, "
        "reduced on the nodes; a node that cannot do that sends its files as they are)",
    )
    group.add_argument(
        "--keep-raw",
        default=_FOLLOW.keep_raw,
        metavar="RANKS",
        help="fetch everything of these ranks: 0-7,13, or 'suspects', after the analysis: "
        "those that the findings name, and peers to compare with",
    )
    group.add_argument(
        "--collect-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="a further option of cluster-collect, like --collect-arg=--bandwidth=200M; repeatable",
    )
    group.add_argument(
        "--host-defaults",
        type=named_path,
        metavar="FILE",
        help="an inventory whose `defaults` (user, port, jump, …) are used for the job's hosts",
    )
    group.add_argument(
        "--dask-interface",
        metavar="NAME",
        help="with --scheduler srun, which starts Dask on the post-job's nodes: its network, like ib0",
    )


def add_tell_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for notifications."""
    group = parser.add_argument_group("telling people")
    group.add_argument(
        "--tell",
        choices=TELL_WHEN,
        default=_TELL.when,
        help="when the webhook is called: findings of severity warning or worse, also problems, always, "
        "never (default: %(default)s)",
    )
    group.add_argument(
        "--webhook-file",
        type=named_path,
        metavar="FILE",
        help=f"a file with the webhook's address (default: the environment variable {URL_VARIABLE})",
    )
    group.add_argument(
        "--webhook-format",
        choices=FORMATS,
        default=FORMATS[0],
        help="form of the message, by its reader (default: %(default)s)",
    )
    add_language(group, LANGUAGE, argparse.SUPPRESS)
    group.add_argument(
        "--prometheus-dir",
        type=named_path,
        metavar="DIR",
        help="also put the metrics there: the directory of node_exporter's textfile collector",
    )
    kept = "a job's metrics, and the alerts on them, end after this long"
    add_valued(group, "--keep-metrics", number_above_0, _TELL.keep_metrics_s / _HOUR_S, "HOURS", kept)


def follow_options(arguments: argparse.Namespace, *, has_nodes: bool = False) -> FollowOptions:
    """Return how to follow a job; `has_nodes` where the hook has nodes of Slurm to itself.

    Raises:
        InputError: the host defaults cannot be read, or meant.
        UsageError: the commands below would refuse an option.
    """
    options = FollowOptions(
        scheduler=arguments.scheduler,
        dask_interface=arguments.dask_interface,
        shows_addresses=arguments.show_addresses,
        fail_on=arguments.fail_on,
        what=tuple(arguments.what) or _FOLLOW.what,
        keep_raw=arguments.keep_raw,
        collect_more=tuple(arguments.collect_arg),
        host_defaults=read_defaults(arguments.host_defaults),
        deadline_s=arguments.deadline,
        shows_report=not getattr(arguments, "json", False),
    )
    check_follow_options(options, has_nodes=has_nodes)
    return options


def tell_options(arguments: argparse.Namespace) -> TellOptions:
    """Return the receivers of notifications.

    Raises:
        InputError: the webhook's file cannot be read.
    """
    return TellOptions(
        when=arguments.tell,
        webhook=find_webhook(arguments.webhook_file, arguments.webhook_format),
        prometheus_dir=arguments.prometheus_dir,
        keep_metrics_s=arguments.keep_metrics * _HOUR_S,
        language=language_of(arguments.lang),
    )


def forwarded_work_arguments(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the options about analysing and collecting as they are written, for the process that works."""
    return tuple(_written(arguments, add_analyse_arguments))


def forwarded_tell_arguments(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the options of `add_tell_arguments` likewise; a webhook's address is never among them."""
    return (*_written(arguments, add_tell_arguments), f"--lang={language_of(arguments.lang)}")


def _values_of(add: Callable[[argparse.ArgumentParser], None]) -> dict[str, object]:
    """Return the values that all that `add` adds has where none is given."""
    parser = argparse.ArgumentParser(add_help=False)
    add(parser)
    return vars(parser.parse_args([]))


def _written(arguments: argparse.Namespace, add: Callable[[argparse.ArgumentParser], None]) -> Iterator[str]:
    """Yield the options of `add` as they are written; paths become absolute, as their reader is elsewhere."""
    for name in _values_of(add):
        option, value = f"--{name.replace('_', '-')}", getattr(arguments, name)
        if isinstance(value, Path):
            yield f"{option}={value.absolute()}"
        elif isinstance(value, list):
            yield from (f"{option}={one}" for one in value)
        elif value is True:
            yield option
        elif value:
            yield f"{option}={value}"
