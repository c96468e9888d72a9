"""What a collection, a plan and a check look like for people: a table by host, then what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cluster_collect.inventory.nodesets import fold
from cluster_collect.show.context import Surroundings
from cluster_collect.spec import UNREAD
from cluster_collect.transfer.plan import HostLook
from cluster_collect.wording import count, format_bytes, format_seconds, printable
from cluster_run.manifest import CollectedFile, HostOutcome
from cluster_run.said.chinese import translated, word
from cluster_run.said.tables import format_table

#: With more hosts than this, those that are well share one row.
MAX_ROWS = 40
#: How many files of a host are named; the manifest has them all.
MAX_FILES_NAMED = 3
#: A clock that is further off than this spoils the comparison of time stamps between hosts.
MAX_CLOCK_OFFSET_MS = 1000.0

_SIGNS = {"complete": "✓", "partial": "▲", "failed": "✗"}
_RAW_ADVICE = (
    "what was fetched is analysed as usual; timelines, which are only read on their hosts, are missing"
)
_UNREAD_ADVICE = (
    "call it again with a larger --columns-deadline or --columns-memory; --what full fetches them whole"
)
_WHOLE_ADVICE = (
    "they are analysed as usual; a larger --columns-deadline or --columns-memory lets them come as columns"
)
_CLOCK_ADVICE = "time stamps of its ranks cannot be compared with others; synchronise it (chronyc tracking)"


def collection_text(outcomes: Sequence[HostOutcome], around: Surroundings) -> str:
    """Return the table of a collection, its troubles and where the data lies."""
    shown, folded = list(outcomes), []
    if len(shown) > MAX_ROWS:
        folded = [outcome for outcome in shown if outcome.state == "complete"]
        shown = [outcome for outcome in shown if outcome.state != "complete"]
    rows = [_outcome_row(outcome, around) for outcome in shown]
    if folded:
        rows.append(_folded_row(folded, around))
    head = ("", "", "host", "state", "files", "size", "time")
    table = format_table(_words(head, around), rows, numbers={1, 4, 5, 6})
    text = _troubles_text(trouble for outcome in outcomes for trouble in _outcome_troubles(outcome, around))
    text += _missing_text(around)
    for host in sorted({outcome.same_files_as for outcome in outcomes} - {""}):
        names = fold(str(outcome.server_id) for outcome in outcomes if outcome.same_files_as == host)
        text += f"\n{printable(names)}: the same file system as host {host}, fetched once\n"
    n_complete = sum(outcome.state == "complete" for outcome in outcomes)
    n_files = sum(outcome.files.n_stored for outcome in outcomes)
    n_bytes = sum(outcome.files.stored_bytes for outcome in outcomes)
    text += f"\n{n_complete} of {count(len(outcomes), 'host')} complete: {count(n_files, 'file')}, "
    text += f"{format_bytes(n_bytes)} in {format_seconds(around.seconds)}, in {around.run}\n"
    if n_complete < len(outcomes):
        run = shlex.quote(str(around.run))
        text += f"  → call it again with --output {run}: it fetches only what is missing\n"
    return table + translated(text, around.language)


def plan_text(plans: Sequence[HostLook], around: Surroundings) -> str:
    """Return the table of a dry run."""
    rows = [
        (
            *_host_cells(plan),
            f"{len(plan.files):,}",
            format_bytes(plan.n_bytes),
            f"{len(plan.outcome.files):,}" if plan.outcome.files else "",
            printable(plan.method),
        )
        for plan in plans
    ]
    n_files, n_bytes = sum(len(plan.files) for plan in plans), sum(plan.n_bytes for plan in plans)
    head = ("", "", "host", "files", "size", "skipped", "method")
    table = format_table(_words(head, around), rows, numbers={1, 3, 4, 5}, empty_columns=False)
    text = _troubles_text(_answer_troubles(plans, around)) + _missing_text(around)
    if around.free_bytes is not None and n_bytes + around.min_free_bytes > around.free_bytes:
        if_whole = " if all come whole" if around.are_reduced else ""
        text += f"\nnot enough room here{if_whole}: {format_bytes(around.free_bytes)} free\n"
        text += "  → choose another --output, collect less with --what, or make room\n"
    free = "" if around.free_bytes is None else f" ({format_bytes(around.free_bytes)} free)"
    text += f"\nwould fetch {count(n_files, 'file')}, {format_bytes(n_bytes)} into {around.run}{free}"
    return table + translated(f"{text}{_sizes_text(around)}; nothing was copied\n", around.language)


def check_text(checks: Sequence[HostLook], around: Surroundings) -> str:
    """Return the table of a check."""
    rows = [_check_row(check) for check in checks]
    head = ("", "", "host", "login", "files", "size", "free", "clock", "method", "tools")
    table = format_table(_words(head, around), rows, numbers={1, 3, 4, 5, 6, 7}, empty_columns=False)
    off = [check.outcome for check in checks if _is_clock_off(check.outcome)]
    text = _troubles_text(
        [
            *_answer_troubles(checks, around),
            *(Trouble((outcome.server_id,), _CLOCK_REASON, _CLOCK_ADVICE) for outcome in off),
        ]
    )
    text += _missing_text(around)
    n_good = sum(not check.outcome.reason for check in checks)
    free = "" if around.free_bytes is None else f", {format_bytes(around.free_bytes)} free here"
    text += f"\n{n_good} of {count(len(checks), 'host')} ready{free}"
    return table + translated(f"{text}{_sizes_text(around)}; nothing was copied\n", around.language)


def _sizes_text(around: Surroundings) -> str:
    return "; sizes are those on the hosts, columns take a few percent of them" if around.are_reduced else ""


def _words(head: Sequence[str], around: Surroundings) -> tuple[str, ...]:
    return tuple(word(one, around.language) for one in head)


def _outcome_row(outcome: HostOutcome, around: Surroundings) -> tuple[str, ...]:
    return (
        _SIGNS[outcome.state],
        outcome.host,
        printable(outcome.server_id),
        word(outcome.state, around.language),
        f"{outcome.files.n_stored:,}",
        format_bytes(outcome.files.stored_bytes),
        format_seconds(outcome.seconds),
    )


def _folded_row(outcomes: Sequence[HostOutcome], around: Surroundings) -> tuple[str, ...]:
    names = printable(fold(outcome.server_id for outcome in outcomes))
    return (
        _SIGNS["complete"],
        "",
        translated(f"{names} ({count(len(outcomes), 'host')})", around.language),
        word("complete", around.language),
        f"{sum(outcome.files.n_stored for outcome in outcomes):,}",
        format_bytes(sum(outcome.files.stored_bytes for outcome in outcomes)),
        format_seconds(max(outcome.seconds for outcome in outcomes)),
    )


def _check_row(check: HostLook) -> tuple[str, ...]:
    answered, offset_ms = check.login_s is not None, check.outcome.clock_offset_ms
    return (
        *_host_cells(check),
        "" if check.login_s is None else format_seconds(check.login_s),
        f"{len(check.files):,}" if answered else "",
        format_bytes(check.n_bytes) if answered else "",
        "" if check.free_bytes is None else format_bytes(check.free_bytes),
        "" if offset_ms is None else f"{offset_ms:+.0f} ms",
        printable(check.method),
        printable(", ".join(f"{name} {_version(text)}" for name, text in check.tools)),
    )


def _host_cells(look: HostLook) -> tuple[str, str, str]:
    host = look.outcome
    return "✗" if host.reason else "✓", host.host, printable(host.server_id)


_CLOCK_REASON = f"its clock is more than {MAX_CLOCK_OFFSET_MS / 1000:g} s off"


def _is_clock_off(host: HostOutcome) -> bool:
    """Whether a clock is off for certain: a slow answer makes none wrong."""
    if host.clock_offset_ms is None:
        return False
    return abs(host.clock_offset_ms) - (host.clock_uncertainty_ms or 0.0) > MAX_CLOCK_OFFSET_MS


def _outcome_troubles(outcome: HostOutcome, around: Surroundings) -> list[Trouble]:
    troubles = []
    if outcome.reason:
        incomplete = [file for file in outcome.files.not_stored if file.state != "skipped"]
        troubles.append(_trouble(outcome, around, _named(incomplete)))
    if outcome.raw_because:
        reason = f"sent its files as they are, not as columns: {outcome.raw_because}"
        troubles.append(Trouble((outcome.server_id,), reason, _RAW_ADVICE))
    n_unread = sum(file.reason == UNREAD for file in outcome.files) if outcome.files.n_columns else 0
    if n_unread:
        reason = f"had no time or memory to read {count(n_unread, 'timeline')}"
        troubles.append(Trouble((outcome.server_id,), reason, _UNREAD_ADVICE))
    if outcome.n_over_limits:
        reason = f"had no time or memory to read {count(outcome.n_over_limits, 'file')}, which came whole"
        troubles.append(Trouble((outcome.server_id,), reason, _WHOLE_ADVICE))
    if _is_clock_off(outcome):
        troubles.append(Trouble((outcome.server_id,), _CLOCK_REASON, _CLOCK_ADVICE))
    return troubles


def _answer_troubles(answers: Sequence[HostLook], around: Surroundings) -> list[Trouble]:
    return [_trouble(one.outcome, around) for one in answers if one.outcome.reason]


def _trouble(host: HostOutcome, around: Surroundings, details: tuple[str, ...] = ()) -> Trouble:
    spec = around.specs.get(host.host)
    command = around.command_to_try(host.host, host.failure)
    address = "" if spec is None else spec.address
    return Trouble((host.server_id,), host.reason, host.advice, address, details, command)


def _named(files: Sequence[CollectedFile]) -> tuple[str, ...]:
    """Return lines for the first few of several files; a single one is in the reason already."""
    if len(files) < 2:
        return ()
    lines = [f"{file.source}: {file.reason or file.state}" for file in files[:MAX_FILES_NAMED]]
    if len(files) > MAX_FILES_NAMED:
        lines.append(f"and {len(files) - MAX_FILES_NAMED:,} more, see manifest.json")
    return tuple(lines)


def _version(text: str) -> str:
    """Return the version number in what a program says of itself."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return match[0] if match else text


def _missing_text(around: Surroundings) -> str:
    text = ""
    if around.missing:
        advice = "add the host to the inventory, or set its server_id to the name in the rank table"
        text += f"\nmissing: {printable(around.missing)}\n  → {advice}\n"
    if around.absent_ranks:
        advice = "ranks are known by names like profiler_info_13.json; --what GLOB takes files by their paths"
        text += f"\nmissing: no capture of rank {around.absent_ranks}\n  → {advice}\n"
    return text


def _troubles_text(troubles: Iterable[Trouble]) -> str:
    text = ""
    for trouble in fold_troubles(troubles):
        hosts = f" ({len(trouble.names)} hosts)" if len(trouble.names) > 1 else ""
        text += f"\n{printable(fold(trouble.names))}{hosts}: {printable(trouble.reason)}\n"
        text += "".join(f"    {printable(line)}\n" for line in trouble.details)
        if trouble.advice:
            text += f"  → {printable(trouble.advice)}\n"
        if trouble.command:
            text += f"  → try: {printable(trouble.command)}\n"
    return text


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a host, or with some in the order of the inventory, and what to do about it.

    `address` is that of a single host, empty where it has none; `command` can be tried by hand.
    """

    names: tuple[str, ...]
    reason: str
    advice: str
    address: str = ""
    details: tuple[str, ...] = ()
    command: str = ""


def fold_troubles(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """Merge troubles of single hosts that differ in the host alone; advice and command are the first one's.

    `the key of node3 is revoked` and `the key of node4 is revoked` become one trouble of two hosts.
    """
    groups: dict[str, list[Trouble]] = {}
    for one in troubles:
        reason = one.reason
        for known in {one.names[0], one.address} - {""}:
            reason = re.sub(rf"(?<![\w.]){re.escape(known)}(?![\w.]*\w)", "the host", reason)
        groups.setdefault("".join((reason, *one.details)), []).append(one)
    return tuple(replace(group[0], names=tuple(one.names[0] for one in group)) for group in groups.values())
