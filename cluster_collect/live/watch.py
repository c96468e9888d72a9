"""`--every 30m --keep 48`: captures at intervals; notifies when a verdict changes, and only then.

Hooks report after a job; this reports while it runs, by the same webhook and metrics.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from calendar import timegm
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from cluster_analysis.findings_json import read_document
from cluster_collect.live.collected import SUSPECTS_SUFFIX, Hosts, analysed, findings_of, taken
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import reasons
from cluster_collect.runner import run_interruptibly
from cluster_collect.show.progress import Display
from cluster_collect.wording import format_seconds
from cluster_run.errors import ClusterError, ExitCode, InterruptedRunError, in_words
from cluster_run.files import json_of, write_text_whole
from cluster_run.layout import ANALYSIS_OUTPUT_NAME
from cluster_run.said.chinese import translated
from cluster_tell.metrics import write_metrics
from cluster_tell.outcome import Outcome
from cluster_tell.teller import Teller, TellOptions
from cluster_tell.verdict import Verdict, verdict_of
from cluster_tell.webhook import find_webhook

#: The most of a job's time that a watch has it run captured.
MOST_SHARE = 0.01
#: One line a round, beside the run directories.
RECORD_NAME = "live.jsonl"
_RUN_PREFIX = "live-"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
#: Messages that were not taken yet.
_BACKLOG = ".untold"
#: The verdict, and its alarms.
Key: TypeAlias = tuple[str, ...]


@dataclass
class Budget:
    """How long the job ran captured, of how long it was watched; in seconds of the monotonic clock."""

    began_s: float
    busy_s: float = 0.0
    #: The cost of the last capture is the estimate for the next one.
    last_s: float = field(default=0.0)

    def spent(self, busy_s: float) -> None:
        """Count a capture; 0 where there was none."""
        self.busy_s += busy_s
        self.last_s = busy_s or self.last_s

    def share(self, now_s: float) -> float:
        """Return the share of the time so far."""
        return self.busy_s / max(now_s - self.began_s, self.busy_s, 1e-9) if self.busy_s else 0.0

    def next_s(self, every_s: float, round_began_s: float) -> float:
        """Return when the next capture may begin: then all of them, with it, are within the share."""
        affordable_s = self.began_s + (self.busy_s + self.last_s) / MOST_SHARE - self.last_s
        return max(round_began_s + every_s, affordable_s)


def watch(
    hosts: Hosts,
    live: LiveOptions,
    base: Path,
    shown: Display,
    say: Callable[[str], None],
    n_rounds: int | None = None,
) -> tuple[str, ExitCode]:
    """Capture, judge and tell until interrupted, or for a number of rounds.

    Raises:
        InterruptedRunError: Ctrl-C, or SIGTERM of a service manager.
        InputError: the webhook cannot be read.
    """
    options = _tell_options(live)
    every_s = live.every_s or 0.0
    base = base.absolute()  # Messages are read elsewhere.
    before, told = _last_keys(base)
    budget = budget_of(base)
    n_done, began_s = 0, -math.inf
    while n_done != n_rounds:
        wait_s = max(0.0, budget.next_s(every_s, began_s) - time.monotonic())
        if wait_s > every_s:
            why = f"more would be over {100 * MOST_SHARE:g}% of the time"
            say(f"the next capture is in {format_seconds(wait_s)}: {why}")
        time.sleep(wait_s)
        began_s, busy_s = time.monotonic(), budget.busy_s
        key, outcome = _look(hosts, live, base, shown, say, budget)
        news = told_after(told, before, key)
        before = key
        with _going_on(say):
            _tell(outcome, replace(options, when="never" if news == told else "always"), base, say)
            told = news
        share = budget.share(time.monotonic())
        captured = translated(f"The job ran captured for {share:.2%} of the time.", live.language)
        say(f"{outcome.line_in(live.language)}\n  {captured}")
        with _going_on(say):
            spent = {"busy_s": round(budget.busy_s - busy_s, 3), "share": round(share, 6)}
            _record(base, {"key": key, "told": told, **spent, "line": outcome.line}, live.keep)
        with _going_on(say):
            _prune(base, live.keep)
        n_done += 1
    return "", ExitCode.DONE


@contextmanager
def _going_on(say: Callable[[str], None]) -> Iterator[None]:
    """Say that a disk is full or fails. It ends no watch: in the next round it may be well."""
    try:
        yield
    except OSError as error:
        say(f"warning: {in_words(error)}")


def _tell_options(live: LiveOptions) -> TellOptions:
    return TellOptions(
        webhook=find_webhook(live.webhook_file, live.webhook_format),
        prometheus_dir=live.prometheus_dir,
        language=live.language,
    )


def _look(
    hosts: Hosts, live: LiveOptions, base: Path, shown: Display, say: Callable[[str], None], budget: Budget
) -> tuple[Key, Outcome]:
    job = live.job or base.name
    run = base / f"{_RUN_PREFIX}{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        result = run_interruptibly(taken(hosts, live, run, shown.tracker, say, budget.spent), shown.tick)
        code, why = analysed(result)
        if code not in (ExitCode.DONE, ExitCode.FINDINGS, ExitCode.INCOMPLETE):
            raise ClusterError(f"{result.run} could not be analysed: {why}")
        document = read_document(findings_of(result.run))
        verdict, results = verdict_of(document), result.run / ANALYSIS_OUTPUT_NAME
        metrics = write_metrics(document, results)
    except InterruptedRunError:
        raise
    except (ClusterError, OSError) as error:
        outcome = Outcome(job, "", "running", "failed", ExitCode.FAILED, reason=in_words(error))
        return ("failed",), outcome
    lost = reasons(result.captured.lost, hosts.names)
    outcome = Outcome(job, "", "running", "analysed", code, results, verdict, lost, metrics)
    return news_of(verdict), outcome


def news_of(verdict: Verdict) -> Key:
    """Return the part of a verdict whose change is reported: what is wrong and where, not by how much."""
    places = {f"{one.kind} {', '.join(one.places) or one.id}" for one in verdict.alarms}
    return (verdict.verdict, *sorted(places))


def told_after(told: Key, before: Key | None, key: Key) -> Key:
    """Return what readers know after a round; it is sent to them where it is not what they were `told`.

    An alarm that is new to them is told at once. All else may be chance in one capture: it is told when two
    rounds in a row say it, or the first one of all.
    """
    alarms = {*told[1:], *key[1:]}
    if len(alarms) > len(told) - 1:
        return (key[0], *sorted(alarms))
    return key if before in (key, None) else told


def _tell(outcome: Outcome, options: TellOptions, base: Path, say: Callable[[str], None]) -> None:
    """Write the metrics, which are of now; send the message that `options` ask for, or keep it for later."""

    def kept(key: str, trouble: str) -> None:
        if trouble:
            say(f"warning: {trouble}")

    backlog = base / _BACKLOG
    backlog.mkdir(parents=True, exist_ok=True)
    with Teller(options, kept, backlog) as teller:
        teller.tell(outcome.job, outcome)


def _last_keys(base: Path) -> tuple[Key | None, Key]:
    """Return the key of the last round, None without any, and what readers know, also by an earlier call."""
    try:
        line = json_of(_lines(base)[-1])
        key = tuple(map(str, line["key"]))
        return key, tuple(map(str, line.get("told", key)))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None, ("healthy",)


def budget_of(base: Path) -> Budget:
    """Go on with the budget of the rounds in the record: a watch may be started again and again."""
    budget = Budget(time.monotonic())
    for line in _lines(base):
        with suppress(ValueError, KeyError, TypeError):
            one = json_of(line)
            budget.spent(float(one["busy_s"]))
            ago_s = time.time() - timegm(time.strptime(one["at"], _TIME))
            budget.began_s = min(budget.began_s, time.monotonic() - ago_s)
    return budget


def _lines(base: Path) -> list[str]:
    path = base / RECORD_NAME
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


def _record(base: Path, look: Mapping[str, object], keep: int) -> None:
    """Write a line of this round behind those of earlier rounds; the oldest lines go."""
    line = json.dumps({"at": time.strftime(_TIME, time.gmtime()), **look})
    lines = [*_lines(base), line][-keep:]
    write_text_whole(base / RECORD_NAME, "".join(f"{one}\n" for one in lines))


def _prune(base: Path, keep: int) -> None:
    """Remove the oldest captures of this watch, and what was looked at closer with them.

    A round that failed pushes no capture out; of several the last one stays, to be looked at.
    """
    # The record tells their order, as a clock may be set back. What is no longer in it is older.
    record = "".join(_lines(base))
    runs = sorted(
        (
            path
            for path in base.glob(f"{_RUN_PREFIX}*")
            if path.is_dir() and not path.name.endswith(SUSPECTS_SUFFIX)
        ),
        key=lambda path: (record.find(f"{path.name}/"), path),
    )
    judged = [path for path in runs if findings_of(path).is_file()]
    failed = [path for path in runs if path not in judged]
    for path in (*judged[:-keep], *failed[:-1]):
        shutil.rmtree(path.with_name(f"{path.name}{SUSPECTS_SUFFIX}"), ignore_errors=True)
        shutil.rmtree(path)
