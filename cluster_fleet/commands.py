"""The commands of `cluster-fleet`; results go to stdout."""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Callable, Mapping

from cluster_fleet.exchange import export, exported
from cluster_fleet.judging.probes import place_of
from cluster_fleet.metrics import metrics_text
from cluster_fleet.page import page
from cluster_fleet.run_record import record_of
from cluster_fleet.status import Status, named, status_of
from cluster_fleet.store import Fleet
from cluster_fleet.story import days, sentence
from cluster_run.command_line import language_of
from cluster_run.errors import ExitCode, InputError, UsageError
from cluster_run.files import write_text_whole
from cluster_run.standard_streams import write_result
from cluster_words.headings import of_fleet
from cluster_words.phrase import Phrase


def _add(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    if arguments.results is not None and len(arguments.runs) > 1:
        raise UsageError("--results goes with a single RUN")
    for run in arguments.runs:
        record = record_of(
            run, arguments.results, hours=arguments.hours, show_addresses=arguments.show_addresses
        )
        is_new = fleet.add(record)
        if not arguments.quiet:
            said = of_fleet(
                "added",
                run=record.name,
                n_devices=sum(bool(one.host_key) for one in record.units),
                metrics=tuple(one.metric for one in record.series),
                n_metrics=len(record.series),
                is_new=is_new,
            )
            write_result(f"{said.of(language_of(None))}\n")
    return ExitCode.DONE


def _status(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    status = status_of(fleet)
    if arguments.page is not None:
        write_text_whole(arguments.page, page(fleet, status, language_of(arguments.lang)))
    if arguments.metrics is not None:
        write_text_whole(arguments.metrics, metrics_text(status))
    _tell(status, arguments)
    if not status.n_runs:
        return ExitCode.INCOMPLETE
    return ExitCode.FINDINGS if any(one.is_slow for one in status.stories) else ExitCode.DONE


def _show(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    wanted, units = named(arguments.unit), fleet.units()
    if not any(map(wanted, units.values())):
        names = sorted(
            place_of(units[one.host].known.name, one.known.name) for one in units.values() if one.host >= 0
        )
        known = f"known are {', '.join(names[:3])} and others" if names else "cluster-fleet add RUN first"
        raise InputError(f"{arguments.unit}: it is in no run", known)
    status = status_of(fleet, wanted)
    _tell(status, arguments)
    return ExitCode.FINDINGS if any(one.is_slow for one in status.stories) else ExitCode.DONE


def _tell(status: Status, arguments: argparse.Namespace) -> None:
    if arguments.json:
        write_result(json.dumps(status.plain()) + "\n")
        return
    language = language_of(arguments.lang)
    if not status.n_runs:
        write_result(f"{of_fleet('empty').of(language)}\n")
        return
    lines = [
        of_fleet("fleet", n_devices=status.n_devices, n_hosts=status.n_hosts, n_runs=status.n_runs,
                days=days(status.begin_s, status.end_s)).of(language)
    ]  # fmt: skip
    reported = set()
    for story in status.stories:
        # The cost of a unit is told once, in however many metrics it is slow.
        is_first = story.hours_lost and story.key not in reported
        reported.add(story.key)
        lost = of_fleet("cost", hours=story.hours_lost).of(language) if is_first else ""
        lines.append(f"  {sentence(story, language)}{lost}")
    if not any(one.is_slow for one in status.stories):
        whom = "nothing_asked" if arguments.command == "show" else "nobody"
        lines.append("  " + of_fleet(whom, n_unknown=status.n_unknown).of(language))
    lines += ["  " + of_fleet("repeat", host=name, n=n).of(language) for name, n in status.repeat_hosts]
    if status.n_unknown:
        lines.append("  " + of_fleet("unknown", **status.unknown).of(language))
    write_result("".join(f"{line}\n" for line in lines))


def _export(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    salt = "" if arguments.with_names else arguments.salt or secrets.token_hex(16)
    n = export(fleet.records(), arguments.file, salt)
    return _done(arguments, of_fleet("exported", n=n, file=str(arguments.file)))


def _import(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    # All are read before the first is added: half a file is none.
    new = [fleet.add(one) for one in list(exported(arguments.file))]
    return _done(arguments, of_fleet("imported", n=sum(new), n_known=len(new) - sum(new)))


def _forget(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    return _done(arguments, of_fleet("forgotten", n=fleet.forget(arguments.before)))


def _done(arguments: argparse.Namespace, said: Phrase) -> ExitCode:
    write_result(f"{said.of(language_of(arguments.lang))}\n")
    return ExitCode.DONE


COMMANDS: Mapping[str, Callable[[argparse.Namespace, Fleet], ExitCode]] = {
    "add": _add,
    "status": _status,
    "show": _show,
    "export": _export,
    "import": _import,
    "forget": _forget,
}
