"""`cluster-act`: says what is to be done; does or undoes it if asked. Results go to stdout."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cluster_act.options import make_parser
from cluster_act.plan import has_name, is_standing, planned
from cluster_act.probe import place, probed, timed_by
from cluster_act.values import Case, Planned, RefusedError, UncertainError, Way
from cluster_act.ways.registry import WAYS
from cluster_fleet.cli import open_fleet
from cluster_fleet.judging.probes import CLEARED, CONFIRMED, OPEN, PROBE, device_number
from cluster_run.command_line import exit_code_of, language_of
from cluster_run.errors import ExitCode, UsageError
from cluster_run.files import write_text_whole
from cluster_run.said.chinese import COLON, Language
from cluster_run.standard_streams import write_result
from cluster_words.headings import of_act
from cluster_words.phrase import Phrase

if TYPE_CHECKING:
    from cluster_fleet.store import Fleet


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = make_parser().parse_args(argv)
    left = "what was begun stands in the log"
    return exit_code_of("cluster-act", lambda: _run(arguments), left, arguments.lang)


def _run(arguments: argparse.Namespace) -> ExitCode:
    asked = [arguments.run, arguments.fleet, arguments.undo, arguments.log, arguments.probe]
    if sum(bool(one) for one in asked) != 1:
        raise UsageError("one of RUN, --fleet, --undo, --log and --probe is needed, and no two of them")
    if arguments.probe:
        return _probe(arguments)
    if not arguments.db and arguments.run and not arguments.apply:
        return _act(arguments, None)
    # Only a call that writes the log makes a database: one of a mistyped name would be empty.
    with open_fleet(arguments.db, must_exist=not (arguments.run and arguments.apply)) as fleet:
        if arguments.log:
            empty = f"{of_act('empty_log').of(language_of(arguments.lang))}\n"
            write_result("".join(f"{_line(one)}\n" for one in fleet.actions()) or empty)
            return ExitCode.DONE
        return _undo(arguments, fleet) if arguments.undo else _act(arguments, fleet)


def _act(arguments: argparse.Namespace, fleet: Fleet | None) -> ExitCode:
    from cluster_act.cases import cases_of_fleet, cases_of_run, why_nobody  # noqa: PLC0415 - judges

    cases = cases_of_run(arguments.run, fleet) if arguments.run or fleet is None else cases_of_fleet(fleet)
    past = [] if fleet is None else fleet.actions()
    way = WAYS[arguments.way](arguments)
    plan_of = partial(
        planned,
        way=arguments.way,
        budget=arguments.budget,
        now_s=time.time(),
        unconfirmed=arguments.unconfirmed,
    )
    plan = plan_of(cases, past)
    due = [one for one in plan if one.why_not is None]
    if due and arguments.apply:
        way.check()
    language = language_of(arguments.lang)
    n_failed = sum(not has_name(one.case) for one in plan)
    for one in plan:
        if fleet is not None and arguments.apply:
            # What was refused meanwhile spends nothing.
            (one,) = plan_of([one.case], fleet.actions())  # noqa: PLW2901
        theirs = arguments.node_name.in_case(one.case)
        write_result(f"{_described(one, way, theirs).of(language)}\n")
        if one.why_not is None and arguments.apply and fleet is not None:
            n_failed += not _apply(one.case, arguments.way, partial(way.apply, theirs), fleet, language)
    if not plan:
        untold = why_nobody(arguments.run, fleet)
        n_failed += untold is not None
        write_result(f"{(untold or of_act('nothing')).of(language)}\n")
    if fleet is not None and arguments.apply:
        _exclude(arguments, fleet)
    if due and not arguments.apply:
        said = of_act("not_done", n_due=len(due), n_all=len(plan))
        write_result(f"{said.of(language)}\n")
        return ExitCode.FINDINGS
    return ExitCode.INCOMPLETE if n_failed else ExitCode.DONE


def _described(one: Planned, way: Way, theirs: Case) -> Phrase:
    case = one.case
    if one.why_not is not None:
        return of_act("skipped", unit=case.name, why=one.why_not, evidence=case.evidence)
    do, undo = way.described(theirs)
    return of_act("due", unit=case.name, evidence=case.evidence, cost=case.cost, do=do, undo=undo)


def _apply(case: Case, name: str, act: Callable[[], str], fleet: Fleet, language: Language) -> bool:
    """Write down the intention, act, write down the outcome; an unknown one leaves the intention."""
    number = fleet.note_action(
        at_s=time.time(), way=name, node=case.node, unit=case.unit, reason=case.evidence.en,
        token=case.token, state="intended", devices=json.dumps(case.devices),
    )  # fmt: skip
    try:
        said = act()
    except RefusedError as error:
        fleet.change_action(number, state="refused")
        write_result(f"  {of_act('refused', said=str(error)).of(language)}\n")
        return False
    except UncertainError as error:
        write_result(f"  {of_act('uncertain', said=str(error)).of(language)}\n")
        return False
    fleet.change_action(number, state="done")
    write_result(f"  {of_act('done', said=said).of(language)}\n")
    return True


def _undo(arguments: argparse.Namespace, fleet: Fleet) -> ExitCode:
    """Undo what stands of this way, on a node or all; one thing that was noted twice is undone once."""
    way, n_failed, language = WAYS[arguments.way](arguments), 0, language_of(arguments.lang)
    standing = [
        one
        for one in fleet.actions()
        if is_standing(one) and one["way"] == arguments.way and arguments.undo in ("all", one["node"])
    ]
    if not standing:
        write_result(f"{of_act('nothing_stands').of(language)}\n")
        return ExitCode.DONE
    if not arguments.apply:
        said = of_act("not_undone").of(language)
        write_result("".join(f"{_line(one)}\n" for one in standing) + f"{said}\n")
        return ExitCode.FINDINGS
    way.check()
    # The newest of those that are the same thing.
    for one in {(each["node"], each["unit"]): each for each in standing}.values():
        where = f"{one['node']}{COLON[language == 'zh']}"
        try:
            said = way.undo(arguments.node_name.in_case(_case_of(one)))
        except (RefusedError, UncertainError) as error:
            n_failed += 1
            how = "refused" if isinstance(error, RefusedError) else "undo_uncertain"
            write_result(f"{where}{of_act(how, said=str(error)).of(language)}\n")
            continue
        for same in standing:
            if (same["node"], same["unit"]) == (one["node"], one["unit"]):
                fleet.change_action(same["number"], state="undone", undone_s=time.time())
        write_result(f"{where}{of_act('undone', said=said).of(language)}\n")
    _exclude(arguments, fleet)
    return ExitCode.INCOMPLETE if n_failed else ExitCode.DONE


def _case_of(action: dict[str, Any]) -> Case:
    """Return the case of a logged action: the fleet may have forgotten its devices."""
    reason = str(action["reason"])
    return Case(
        action["unit"], reason.partition(":")[0], action["node"], device_number(reason),
        Phrase(reason, reason), Phrase("", ""),
        is_confirmed=True, devices=tuple(json.loads(action["devices"] or "[]")),
    )  # fmt: skip


def _exclude(arguments: argparse.Namespace, fleet: Fleet) -> None:
    """Keep the list of nodes that something of ours stands on, one a line, for `sbatch --exclude`."""
    if arguments.exclude_file is not None:
        nodes = sorted({arguments.node_name.of(one["node"]) for one in fleet.actions() if is_standing(one)})
        write_text_whole(arguments.exclude_file, "".join(f"{node}\n" for node in nodes))


def _line(action: dict[str, Any]) -> str:
    begun, undone = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s)) if at_s else ""
        for at_s in (action["at_s"], action["undone_s"])
    )
    state = f"{action['state']} {undone}".rstrip()
    return f"{begun} {action['way']} {action['node']} {state}: {action['reason']}"


def _probe(arguments: argparse.Namespace) -> ExitCode:
    if not arguments.probe_command:
        raise UsageError("nothing is named to be timed", "give --probe-command, which prints a time last")
    suspect, control = arguments.probe
    node, _ = place(suspect)
    place(control)
    # Before the work, which takes minutes: a database that cannot be opened is told at once.
    fleet = open_fleet(arguments.db) if arguments.db else None
    found = probed(suspect, control, timed_by(arguments.ssh, arguments.probe_command), arguments.seconds)
    state = CONFIRMED if found.is_slow else CLEARED if found.is_settled else OPEN
    said = of_act("probed", suspect=suspect, control=control, **vars(found))
    described = of_act("probe_" + state.replace(" ", "_"), probed=said)
    write_result(f"{described.of(language_of(arguments.lang))}\n")
    if fleet is not None:
        with fleet:
            fleet.note_action(
                at_s=time.time(), way=PROBE, node=node, unit=suspect, reason=said.en, token="", state=state
            )
    if found.is_slow:
        return ExitCode.FINDINGS
    return ExitCode.DONE if found.is_settled else ExitCode.INCOMPLETE
