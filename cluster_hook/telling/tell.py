"""Report a result: the line in the job's log, the webhook, the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster_analysis.sentences.phrase import Language
from cluster_hook.telling.metrics import KEEP_S
from cluster_hook.telling.outcome import Outcome
from cluster_hook.telling.webhook import Webhook

#: Outcomes worth a message: `findings` a warning or worse; `problems` also what could not be read or done.
TellWhen = Literal["findings", "problems", "always", "never"]
TELL_WHEN: tuple[TellWhen, ...] = ("findings", "problems", "always", "never")
#: A message names this many findings; the report has them all.
_N_TOLD_FINDINGS = 4


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
    return bool(verdict.faults) or (when == "problems" and has_problems)


def message_text(outcome: Outcome, language: Language = "en") -> str:
    """Return the message for people: the one line, and the findings after the first."""
    further = outcome.verdict.faults[1:_N_TOLD_FINDINGS] if outcome.verdict is not None else ()
    return "\n".join([outcome.told(language), *(f"• {finding.text(language)}" for finding in further)])
