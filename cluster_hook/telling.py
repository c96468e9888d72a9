"""Who is told what: the line in the job's log, the webhook, the Prometheus file."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster_hook.outcome import Outcome, outcome_document
from cluster_hook.webhook import Webhook, post
from cluster_run.errors import InputError
from cluster_run.files import write_bytes_whole

#: What is worth a message: `findings` a warning or worse; `problems` also what could not be read or done.
TellWhen = Literal["findings", "problems", "always", "never"]
TELL_WHEN: tuple[TellWhen, ...] = ("findings", "problems", "always", "never")
#: What cluster-analyse calls its metrics, in its output directory.
PROMETHEUS_NAME = "cluster_analysis.prom"


@dataclass(frozen=True)
class TellOptions:
    """Where messages go. `prometheus_dir` is the textfile collector's directory of node_exporter."""

    when: TellWhen = "problems"
    webhook: Webhook | None = None
    prometheus_dir: Path | None = None


def is_worth_telling(outcome: Outcome, when: TellWhen) -> bool:
    """Whether a message is sent for this outcome."""
    if when in ("always", "never"):
        return when == "always"
    has_findings = outcome.verdict is not None and bool(outcome.verdict.faults)
    has_problems = outcome.state == "failed" or (
        outcome.verdict is not None
        and (bool(outcome.verdict.problems) or outcome.verdict.verdict == "unknown")
    )
    return has_findings or (when == "problems" and has_problems)


def tell(outcome: Outcome, options: TellOptions) -> tuple[str, ...]:
    """Send what is to be sent; return what went wrong with it, which never fails the hook."""
    troubles = []
    if options.prometheus_dir is not None:
        troubles.append(_place_metrics(outcome, options.prometheus_dir))
    if options.webhook is not None and is_worth_telling(outcome, options.when):
        troubles.append(post(options.webhook, message_text(outcome), outcome_document(outcome)))
    return tuple(trouble for trouble in troubles if trouble)


def message_text(outcome: Outcome) -> str:
    """Return the message for people: the one line, the next findings, where the report lies."""
    lines = [outcome.line]
    if outcome.verdict is not None:
        lines += [f"• {finding.text}" for finding in outcome.verdict.faults[1:4]]
    return "\n".join(lines)


def _place_metrics(outcome: Outcome, directory: Path) -> str:
    source = outcome.results / PROMETHEUS_NAME if outcome.results and outcome.state == "analysed" else None
    if source is None or not source.is_file():
        return ""
    # One file a job: the collector refuses one metric with the same labels in two files.
    target = directory / f"cluster_analysis_{safe_name(outcome.job)}.prom"
    try:
        if not directory.is_dir():
            raise InputError(f"{directory} is not there")
        write_bytes_whole(target, source.read_bytes())
    except (OSError, InputError) as error:
        with contextlib.suppress(OSError):
            target.unlink(missing_ok=True)
        return f"the metrics were not placed: {error}"
    return ""


def safe_name(text: str) -> str:
    """Return `text` as a file name: letters, digits, `.`, `_` and `-`, never empty, never hidden."""
    name = "".join(character if character.isalnum() or character in "._-" else "_" for character in text)
    return name.lstrip(".") or "_"
