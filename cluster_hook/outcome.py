"""How following one job ended: a value, a line for its log, and a small file beside the results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cluster_hook.verdict import Verdict
from cluster_run.errors import ExitCode
from cluster_run.layout import REPORT_NAME

SCHEMA = "cluster-hook/1"
#: The file beside the results that says how the hook fared.
OUTCOME_NAME = "cluster-hook.json"

#: `analysed` there are findings; `nothing` there was nothing to do, and that is right; `failed` it could
#: not be done.
OutcomeState = Literal["analysed", "nothing", "failed"]


@dataclass(frozen=True)
class Outcome:
    """How following one job ended. `job_state` is the scheduler's word for how the job itself ended."""

    job: str
    job_name: str
    job_state: str
    state: OutcomeState
    code: ExitCode
    results: Path | None = None
    verdict: Verdict | None = None
    reason: str = ""

    @property
    def line(self) -> str:
        """The outcome in one line, for the job's log."""
        name = f" {self.job_name}" if self.job_name else ""
        ended = f" ({self.job_state})" if self.job_state else ""
        said = self.verdict.headline if self.verdict is not None else _without_verdict(self)
        where = f" See {self.results / REPORT_NAME}" if self.verdict is not None and self.results else ""
        return f"job {self.job}{name}{ended}: {said}{where}"


def _without_verdict(outcome: Outcome) -> str:
    return f"not analysed: {outcome.reason}" if outcome.state == "failed" else outcome.reason


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as a JSON object, for programs."""
    verdict = outcome.verdict
    return {
        "schema": SCHEMA,
        "job": {"id": outcome.job, "name": outcome.job_name, "state": outcome.job_state},
        "state": outcome.state,
        "exit_code": int(outcome.code),
        "reason": outcome.reason,
        "line": outcome.line,
        "results": str(outcome.results) if outcome.results else None,
        "verdict": verdict.verdict if verdict else None,
        "findings": [
            {
                "id": finding.id,
                "kind": finding.kind,
                "severity": finding.severity,
                "summary": finding.summary,
                "cost_ms_per_step": finding.cost_ms_per_step,
                "cost_share": finding.cost_share,
            }
            for finding in (verdict.faults if verdict else ())
        ],
        "n_problems": len(verdict.problems) if verdict else 0,
    }


def outcome_text(outcome: Outcome) -> str:
    """Return the outcome file's text."""
    return json.dumps(outcome_document(outcome), indent=1) + "\n"
