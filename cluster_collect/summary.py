"""What a collection, a plan and a check look like for people: a table by host, then what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cluster_collect.advice import Trouble, fold_troubles
from cluster_collect.inventory.nodesets import fold
from cluster_collect.plan import HostCheck, HostPlan
from cluster_collect.wording import count, format_bytes, format_seconds, printable
from cluster_run.manifest import CollectedFile, HostOutcome

#: With more hosts than this, those that are complete share one row.
MAX_ROWS = 40
#: How many files of a host are named; the manifest has them all.
MAX_FILES_NAMED = 3
#: A clock that is further off than this spoils the comparison of time stamps between hosts.
MAX_CLOCK_OFFSET_MS = 1000.0

_SIGNS = {"complete": "✓", "partial": "▲", "failed": "✗"}


def collection_text(outcomes: Sequence[HostOutcome], run: Path, seconds: float) -> str:
    """Return the table of a collection, its troubles and where the data lies."""
    shown = list(outcomes)
    folded: list[HostOutcome] = []
    if len(shown) > MAX_ROWS:
        folded = [outcome for outcome in shown if outcome.state == "complete"]
        shown = [outcome for outcome in shown if outcome.state != "complete"]
    rows = [_outcome_row(outcome) for outcome in shown]
    if folded:
        rows.append(_folded_row(folded))
    head = ("", "", "host", "state", "files", "size", "time")
    text = _table(head, rows, numbers={1, 4, 5, 6})
    troubles = [trouble for outcome in outcomes for trouble in _outcome_troubles(outcome)]
    text += _troubles_text(troubles)
    n_complete = sum(outcome.state == "complete" for outcome in outcomes)
    n_files = sum(outcome.n_stored for outcome in outcomes)
    n_bytes = sum(outcome.stored_bytes for outcome in outcomes)
    text += f"\n{n_complete} of {count(len(outcomes), 'host')} complete: {count(n_files, 'file')}, "
    text += f"{format_bytes(n_bytes)} in {format_seconds(seconds)}, in {run}\n"
    return text


def plan_text(plans: Sequence[HostPlan], run: Path) -> str:
    """Return the table of a dry run."""
    rows = [
        (
            "✗" if plan.reason else "✓",
            plan.host,
            printable(plan.server_id),
            "-" if plan.reason else f"{len(plan.files):,}",
            "-" if plan.reason else format_bytes(plan.n_bytes),
            f"{len(plan.skipped):,}" if plan.skipped else "",
            printable(plan.method),
        )
        for plan in plans
    ]
    text = _table(("", "", "host", "files", "size", "skipped", "method"), rows, numbers={1, 3, 4, 5})
    text += _troubles_text(_troubles(plans))
    n_files, n_bytes = sum(len(plan.files) for plan in plans), sum(plan.n_bytes for plan in plans)
    text += (
        f"\nwould fetch {count(n_files, 'file')}, {format_bytes(n_bytes)} into {run}; nothing was copied\n"
    )
    return text


def check_text(checks: Sequence[HostCheck]) -> str:
    """Return the table of a check."""
    rows = [
        (
            "✗" if check.reason else "✓",
            check.host,
            printable(check.server_id),
            "-" if check.login_s is None else format_seconds(check.login_s),
            "-" if check.login_s is None else f"{check.n_files:,}",
            "-" if check.login_s is None else format_bytes(check.n_bytes),
            "?" if check.free_bytes is None else format_bytes(check.free_bytes),
            "?" if check.clock_offset_ms is None else f"{check.clock_offset_ms:+.0f} ms",
            printable(check.method),
            printable(", ".join(" ".join(tool).strip() for tool in check.tools)),
        )
        for check in checks
    ]
    head = ("", "", "host", "login", "files", "size", "free", "clock", "method", "tools")
    text = _table(head, rows, numbers={1, 3, 4, 5, 6, 7})
    text += _troubles_text([*_troubles(checks), *_clock_troubles(checks)])
    n_good = sum(not check.reason for check in checks)
    text += f"\n{n_good} of {count(len(checks), 'host')} ready; nothing was copied\n"
    return text


def _outcome_row(outcome: HostOutcome) -> tuple[str, ...]:
    return (
        _SIGNS[outcome.state],
        outcome.host,
        printable(outcome.server_id),
        outcome.state,
        f"{outcome.n_stored:,}",
        format_bytes(outcome.stored_bytes),
        format_seconds(outcome.seconds),
    )


def _folded_row(outcomes: Sequence[HostOutcome]) -> tuple[str, ...]:
    return (
        _SIGNS["complete"],
        "",
        f"{printable(fold(outcome.server_id for outcome in outcomes))} ({count(len(outcomes), 'host')})",
        "complete",
        f"{sum(outcome.n_stored for outcome in outcomes):,}",
        format_bytes(sum(outcome.stored_bytes for outcome in outcomes)),
        format_seconds(max(outcome.seconds for outcome in outcomes)),
    )


def _outcome_troubles(outcome: HostOutcome) -> list[Trouble]:
    troubles = []
    if outcome.reason:
        troubles.append(Trouble((outcome.server_id,), outcome.reason, outcome.advice))
    for state, what in (("failed", "not fetched"), ("unstable", "changed while being read")):
        files = [file for file in outcome.files if file.state == state]
        if files:
            troubles.append(Trouble((outcome.server_id,), _files_text(files, what), _FILE_ADVICE[state]))
    return troubles


_FILE_ADVICE = {
    "failed": "run the same command again: it fetches only what is missing",
    "unstable": "collect again when the profiler has finished writing",
}


def _files_text(files: Sequence[CollectedFile], what: str) -> str:
    named = ", ".join(
        f"{file.source} ({file.reason})" if file.reason else file.source for file in files[:MAX_FILES_NAMED]
    )
    more = (
        f" and {len(files) - MAX_FILES_NAMED} more (see manifest.json)"
        if len(files) > MAX_FILES_NAMED
        else ""
    )
    return f"{count(len(files), 'file')} {what}: {named}{more}"


def _troubles(hosts: Iterable[HostPlan | HostCheck]) -> list[Trouble]:
    return [Trouble((host.server_id,), host.reason, host.advice) for host in hosts if host.reason]


def _clock_troubles(checks: Sequence[HostCheck]) -> list[Trouble]:
    return [
        Trouble(
            (check.server_id,),
            f"the clock is more than {MAX_CLOCK_OFFSET_MS / 1000:g} s off",
            "time stamps of different hosts cannot be compared; synchronise the clocks (chronyc tracking)",
        )
        for check in checks
        if check.clock_offset_ms is not None and abs(check.clock_offset_ms) > MAX_CLOCK_OFFSET_MS
    ]


def _troubles_text(troubles: Iterable[Trouble]) -> str:
    text = ""
    for trouble in fold_troubles(troubles):
        hosts = f" ({len(trouble.names)} hosts)" if len(trouble.names) > 1 else ""
        names = printable(fold(trouble.names))
        reason = printable(trouble.reason.removeprefix(f"{names}: "))
        text += f"\n{names}{hosts}: {reason}\n"
        if trouble.advice:
            text += f"  → {printable(trouble.advice)}\n"
    return text


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int]) -> str:
    """Return aligned columns; those in `numbers` to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ""
    for line in lines:
        cells = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            if width
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text
