"""`cluster-fleet`: from its command line to the database and back; results go to stdout."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cluster_fleet.options import VARIABLE, make_parser
from cluster_run.command_line import interruptible
from cluster_run.errors import ClusterError, ExitCode, InputError, UsageError
from cluster_run.files import write_text_whole
from cluster_run.standard_streams import write_result

if TYPE_CHECKING:
    from cluster_fleet.status import Status
    from cluster_fleet.store import Fleet

_PROGRAM = "cluster-fleet"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = make_parser().parse_args(argv)
    try:
        with interruptible():
            return int(_run(arguments))
    except ClusterError as error:
        print(f"{_PROGRAM}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except OSError as error:
        print(f"{_PROGRAM}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return int(ExitCode.FAILED)


def open_fleet(where: str, *, must_exist: bool = True) -> Fleet:
    """Open the database that an option or the environment names.

    Raises:
        UsageError: neither does.
        InputError: it cannot be opened, or the library is missing.
    """
    if not where:
        raise UsageError("no database is named", f"give --db FILE, or set {VARIABLE}")
    try:
        from cluster_fleet.store import Fleet  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(f"{error.name} is not installed", "pip install 'cluster-profiler[fleet]'") from error
    return Fleet(where, must_exist=must_exist)


def _run(arguments: argparse.Namespace) -> ExitCode:
    with open_fleet(arguments.db, must_exist=arguments.command not in ("add", "import")) as fleet:
        return {
            "add": _add,
            "status": _status,
            "show": _show,
            "quote": _quote,
            "export": _export,
            "import": _import,
            "forget": _forget,
        }[arguments.command](arguments, fleet)


def _add(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    from cluster_fleet.remember import record_of  # noqa: PLC0415 - reads tables

    record = record_of(
        arguments.run, arguments.results, hours=arguments.hours, show_addresses=arguments.show_addresses
    )
    is_new = fleet.add(record)
    if not arguments.quiet:
        n_devices = sum(bool(one.host_key) for one in record.units)
        metrics = ", ".join(one.metric for one in record.series) or "nothing that can be compared"
        known = "" if is_new else " (it was there already: nothing changed)"
        write_result(f"{record.name}: {n_devices} devices; {metrics}{known}\n")
    return ExitCode.DONE if is_new else ExitCode.INCOMPLETE


def _status(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    from cluster_fleet.status import status_of  # noqa: PLC0415 - SciPy

    status = status_of(fleet)
    if arguments.page is not None:
        from cluster_fleet.page import page  # noqa: PLC0415 - jinja2

        write_text_whole(arguments.page, page(fleet, status))
    if arguments.metrics is not None:
        from cluster_fleet.metrics import metrics_text  # noqa: PLC0415

        write_text_whole(arguments.metrics, metrics_text(status))
    _tell(status, is_json=arguments.json)
    return ExitCode.FINDINGS if any(one.is_slow for one in status.stories) else ExitCode.DONE


def _show(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    from cluster_fleet.status import named, status_of  # noqa: PLC0415 - SciPy

    status = status_of(fleet, named(arguments.unit))
    if not status.stories:
        raise InputError(f"{arguments.unit}: no run knows it", "names are those of cluster-fleet status")
    _tell(status, is_json=arguments.json)
    return ExitCode.FINDINGS if any(one.is_slow for one in status.stories) else ExitCode.DONE


def _quote(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    """Tell what the fleet knows of whom a run names, and of those of its devices that it knows to be slow."""
    from cluster_fleet.remember import record_of  # noqa: PLC0415 - reads tables
    from cluster_fleet.status import sentence, status_of  # noqa: PLC0415 - SciPy

    record = record_of(arguments.run, arguments.results)
    keys = {one.key for one in record.units}
    named_by_run = {key for finding in record.findings for key in finding.units}
    stories = status_of(fleet, lambda unit: unit.known.key in keys).stories
    told = [one for one in stories if one.is_slow or one.key in named_by_run]
    write_result(
        "".join(f"{sentence(one)}\n" for one in told) or "the fleet knows nothing of whom it names\n"
    )
    return ExitCode.FINDINGS if any(one.is_slow for one in told) else ExitCode.DONE


def _tell(status: Status, *, is_json: bool) -> None:
    from cluster_fleet.status import day, sentence  # noqa: PLC0415

    if is_json:
        write_result(json.dumps(status.plain()) + "\n")
        return
    lines = [
        f"{status.n_devices} devices on {status.n_hosts} hosts in {status.n_runs} runs, "
        f"{day(status.begin_s)} to {day(status.end_s)}"
    ]
    for story in status.stories:
        lost = f"; findings that name it cost {story.hours_lost:.1f} device-hours" if story.hours_lost else ""
        lines.append(f"  {sentence(story)}{lost}")
    if not any(one.is_slow for one in status.stories):
        lines.append("  nobody is slow" + (" as far as can be told" if status.n_unknown else ""))
    lines += [f"  {name}: slow {n} times by its devices or itself" for name, n in status.repeat_hosts]
    if status.n_unknown:
        lines.append(f"  {status.n_unknown} devices or hosts: too few runs to tell")
    write_result("".join(f"{line}\n" for line in lines))


def _export(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    from cluster_fleet.exchange import export  # noqa: PLC0415

    salt = "" if arguments.with_names else arguments.salt or secrets.token_hex(16)
    write_result(f"{export(fleet.records(), arguments.file, salt)} runs in {arguments.file}\n")
    return ExitCode.DONE


def _import(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    from cluster_fleet.exchange import exported  # noqa: PLC0415

    # All are read before the first is added: half a file is none.
    new = [fleet.add(one) for one in list(exported(arguments.file))]
    write_result(f"{sum(new)} runs added, {len(new) - sum(new)} were there already\n")
    return ExitCode.DONE


def _forget(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    write_result(f"{fleet.forget(arguments.before)} runs forgotten\n")
    return ExitCode.DONE
