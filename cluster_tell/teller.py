"""Tells people from a thread of its own: a webhook that hangs delays no job.

A message lies in a directory until it is sent. A lasting directory keeps the messages that a process did not
send because it was killed or gave up, and the next process sends them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cluster_run.errors import ClusterError, InputError, in_words
from cluster_run.files import lock_held, write_text_whole
from cluster_run.said.chinese import Language
from cluster_tell.metrics import KEEP_S, metrics_of_a_failure, place_metrics, prune_metrics, safe_name
from cluster_tell.outcome import Outcome, outcome_document, outcome_from_text, outcome_text
from cluster_tell.webhook import Trouble, Webhook, post

#: Failures in a row after which the webhook is left alone for a while.
N_FAILURES = 3
_REST_S = 300.0
#: A message that could not be sent within this time is dropped.
_KEPT_S = 86400.0

_GIVEN_UP = Trouble(f"the webhook failed {N_FAILURES} times before", may_pass=True)


class Teller:
    """Takes outcomes, and sends what is worth a message; close it, or use it as a context manager.

    Args:
        options: where messages go, and which.
        report: called for each message, from any thread, with its key and why it was not sent, empty where it
            was.
        backlog: a directory of this process and its successors; without it messages that the webhook does not
            take are lost, and said to be.
    """

    def __init__(
        self, options: TellOptions, report: Callable[[str, str], None], backlog: Path | None = None
    ) -> None:
        self._options, self._report, self._lasts = options, report, backlog is not None
        self._wake, self._is_closed = threading.Event(), False
        if options.webhook is not None:
            self._directory = backlog or Path(tempfile.mkdtemp(prefix="cluster-hook-tell-"))
            # A daemon: a process that is stopped does not wait for a webhook.
            self._sender = threading.Thread(target=self._send_all, daemon=True)
            self._sender.start()

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        elif self._options.webhook is not None and not self._lasts:
            shutil.rmtree(self._directory, ignore_errors=True)

    def tell(self, key: str, outcome: Outcome) -> None:
        """Write the metrics of an outcome, and have its message sent; returns at once.

        `key` names the outcome: a second one of the same key takes the place of one that was not sent yet.
        """
        options = self._options
        metrics = metrics_of_a_failure(time.time()) if outcome.state == "failed" else outcome.metrics
        if options.prometheus_dir is not None and metrics:
            try:
                place_metrics(metrics, outcome.job, options.prometheus_dir, options.keep_metrics_s)
            except InputError as error:
                self._report(key, str(error))
            prune_metrics(options.prometheus_dir)
        if options.webhook is None or not is_worth_telling(outcome, options.when):
            return
        try:
            write_text_whole(self._directory / f"{safe_name(key)}.json", outcome_text(outcome))
        except OSError as error:
            self._report(key, f"job {outcome.job}: no message was sent: {error.strerror}")
        self._wake.set()

    def close(self) -> None:
        """Send what waits, as far as the webhook takes it; returns when it was sent or given up."""
        if self._options.webhook is None:
            return
        self._is_closed = True
        self._wake.set()
        self._sender.join()
        if not self._lasts:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _send_all(self) -> None:
        try:
            self._send_as_they_come()
        except OSError as error:
            self._report("messages", f"no message can be sent: {self._directory}: {error.strerror}")

    def _send_as_they_come(self) -> None:
        n_failed, rests_until_s, tried = 0, 0.0, set[Path]()
        with lock_held(self._directory / ".lock") as is_ours:
            # Else a process before us still sends, and what we leave there as well.
            while is_ours is not None:
                # In this order: whatever comes after it wakes us once more.
                self._wake.clear()
                is_last = self._is_closed
                for path in sorted(self._directory.glob("*.json")):
                    rests = time.monotonic() < rests_until_s
                    if path in tried and (rests or n_failed < N_FAILURES):
                        continue
                    trouble = _GIVEN_UP if rests else self._send(path)
                    if trouble is not None and self._let_go(path, trouble):
                        tried.add(path)
                    n_failed = n_failed + 1 if trouble else 0
                    if n_failed >= N_FAILURES and not rests:
                        rests_until_s = time.monotonic() + _REST_S
                if is_last:
                    return
                self._wake.wait(_REST_S)

    def _send(self, path: Path) -> Trouble | None:
        webhook = self._options.webhook
        assert webhook is not None
        try:
            outcome = outcome_from_text(path.read_text())
        except (ClusterError, OSError) as error:
            return Trouble(in_words(error), may_pass=False)
        trouble = post(webhook, message_text(outcome, self._options.language), outcome_document(outcome))
        if trouble is None:
            path.unlink(missing_ok=True)
            self._report(path.stem, "")
        return trouble

    def _let_go(self, path: Path, trouble: Trouble) -> bool:
        """Keep a message for later where that can help, else lose it; return whether it is kept."""
        with contextlib.suppress(OSError):
            is_kept = self._lasts and trouble.may_pass and time.time() - path.stat().st_mtime < _KEPT_S
            if not is_kept:
                path.unlink()
            further = "; it is tried again later" if is_kept else ""
            self._report(path.stem, f"no message was sent: {trouble.text}{further}")
            return is_kept
        return False


#: Outcomes worth a message: `findings` a warning or worse; `problems` also what could not be read or done.
TellWhen = Literal["findings", "problems", "always", "never"]
TELL_WHEN: tuple[TellWhen, ...] = get_args(TellWhen)
#: A message names this many findings; the report has them all.
_N_REPORTED_FINDINGS = 4


@dataclass(frozen=True)
class TellOptions:
    """Where messages go. `prometheus_dir` is the directory of node_exporter's textfile collector; the metrics
    of a job end there after `keep_metrics_s`.
    """

    when: TellWhen = "problems"
    webhook: Webhook | None = None
    prometheus_dir: Path | None = None
    keep_metrics_s: float = KEEP_S
    language: Language = "en"


def is_worth_telling(outcome: Outcome, when: TellWhen) -> bool:
    """Whether a message is sent for this outcome."""
    if when in ("always", "never"):
        return when == "always"
    verdict = outcome.verdict
    if verdict is None:
        return when == "problems" and outcome.state == "failed"
    has_problems = bool(verdict.problems) or verdict.verdict == "unknown"
    return bool(verdict.alarms) or (when == "problems" and has_problems)


def message_text(outcome: Outcome, language: Language = "en") -> str:
    """Return the message for people: the one line, and the findings after the first."""
    further = outcome.verdict.alarms[1:_N_REPORTED_FINDINGS] if outcome.verdict is not None else ()
    return "\n".join([outcome.line_in(language), *(f"• {finding.text(language)}" for finding in further)])
