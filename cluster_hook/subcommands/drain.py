"""The subcommand for Slurm's administrators: drain."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from cluster_hook.options import (
    add_analyse_arguments,
    add_collect_arguments,
    add_tell_arguments,
    follow_options,
    forwarded_work_arguments,
    tell_options,
)
from cluster_hook.spool.drain import Drained, DrainOptions, drain, drain_code
from cluster_hook.spool.spool import Spool
from cluster_hook.subcommands.json_lines import add_json, print_ended, print_trouble, say_on_stderr
from cluster_run.command_line import Commands, add_valued, named_path, number_above_0, positive_number
from cluster_run.errors import ExitCode, InputError
from cluster_tell.metrics import place_drain_metrics, prune_metrics
from cluster_tell.teller import Teller

DEFAULT_SPOOL = Path("/var/spool/cluster-hook")
_DEFAULT = DrainOptions()
_DAY_S = 86400.0
#: How often the drain writes its own metrics and removes those of jobs long gone.
_METRICS_EVERY_S = 15.0
#: Analyses yield to all other work on the host that drains.
_NICENESS = 10


def add_drain(commands: Commands) -> None:
    """Add `drain`."""
    parser = commands.add_parser(
        "drain",
        help="work off the requests that the epilog dropped; for cron or a systemd timer",
        description="Works off the requests in the spool, each in the name of the job's user. May be started "
        "at any time: a second drain ends at once, a finished request is not done again.",
    )
    add_valued(parser, "--spool", named_path, DEFAULT_SPOOL, "DIR")
    add_valued(parser, "--at-once", positive_number, _DEFAULT.n_at_once, "N")
    tries = "how often a request is tried before it is given up"
    add_valued(parser, "--attempts", positive_number, _DEFAULT.n_attempts, "N", tries)
    again = "seconds before it is tried again"
    add_valued(parser, "--retry-after", number_above_0, _DEFAULT.retry_after_s, "S", again)
    add_valued(
        parser,
        "--max-age",
        number_above_0,
        _DEFAULT.max_age_s / _DAY_S,
        "DAYS",
        "older requests are given up",
    )
    kept = "how long the records of finished requests are kept"
    add_valued(parser, "--keep", number_above_0, _DEFAULT.keep_s / _DAY_S, "DAYS", kept)
    add_analyse_arguments(parser)
    add_collect_arguments(parser)
    add_tell_arguments(parser)
    add_json(parser, "a request")
    parser.set_defaults(run=_drain)


def _drain(arguments: argparse.Namespace) -> ExitCode:
    follow_options(arguments)
    telling = tell_options(arguments)
    options = DrainOptions(
        n_at_once=arguments.at_once,
        n_attempts=arguments.attempts,
        retry_after_s=arguments.retry_after,
        max_age_s=arguments.max_age * _DAY_S,
        keep_s=arguments.keep * _DAY_S,
        deadline_s=arguments.deadline,
        worker_arguments=forwarded_work_arguments(arguments),
        calls_webhook=telling.webhook is not None and telling.when != "never",
    )

    os.nice(_NICENESS)
    spool = Spool(arguments.spool)
    spool.prepare()

    def said(key: str, trouble: str) -> None:
        with contextlib.suppress(OSError):
            spool.note_reported(key, trouble)
        print_trouble(arguments, key, trouble)

    def ended(drained: Drained) -> None:
        print_ended(arguments, "request", drained.outcome, drained.state, drained.text, key=drained.key)
        if drained.outcome is not None:
            teller.tell(drained.key, drained.outcome)

    looked = _looker(spool, telling.prometheus_dir, arguments) if telling.prometheus_dir else lambda: None
    with Teller(telling, said, spool.root / "untold") as teller:
        all_ended = drain(spool, options, ended, looked)
    if all_ended is None:
        say_on_stderr(arguments, "another drain is at work on this spool")
        return ExitCode.DONE
    return drain_code(all_ended)


def _looker(spool: Spool, directory: Path, arguments: argparse.Namespace) -> Callable[[], None]:
    """Return what keeps the metrics in `directory` true, however long the drain works."""
    next_s = 0.0

    def looked() -> None:
        nonlocal next_s
        if time.monotonic() < next_s:
            return
        next_s = time.monotonic() + _METRICS_EVERY_S
        prune_metrics(directory)
        try:
            areas = ("pending", "active", "failed")
            place_drain_metrics({area: len(spool.keys(area)) for area in areas}, directory)
        except InputError as error:
            say_on_stderr(arguments, str(error))

    return looked
