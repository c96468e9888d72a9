"""How following one job ended: a value, a line for its log, and a small file beside the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from cluster_run.errors import ExitCode, InputError, SchemaError, read_as
from cluster_run.files import json_of
from cluster_run.host_names import HostNames
from cluster_run.layout import REPORT_NAME
from cluster_run.said.chinese import Language, translated
from cluster_tell.metrics import MAX_METRICS_LENGTH
from cluster_tell.verdict import Verdict, say

SCHEMA = "cluster-hook/1"
#: The file beside the results that says how the hook fared.
OUTCOME_NAME = "cluster-hook.json"

#: A user's process may say anything: longer ones are no outcome, and longer texts and lists are cut.
_MAX_LENGTH = 2 * MAX_METRICS_LENGTH
_MAX_TEXT = 2000
_MAX_LIST = 50

#: `analysed` there are findings; `nothing` there was nothing to do, and that is right; `waiting` the job has
#: not ended; `failed` it could not be done.
OutcomeState = Literal["analysed", "nothing", "waiting", "failed"]
_STATES: Mapping[str, OutcomeState] = {one: one for one in get_args(OutcomeState)}


@dataclass(frozen=True)
class Outcome:
    """How following one job ended.

    `job_state` is the scheduler's word for how the job itself ended. `reason` says why there is no verdict,
    or why it may rest on less than all data. `metrics` is the text for Prometheus. `is_permanent`: it failed
    for a mistake that a further attempt will meet again.
    """

    job: str
    job_name: str
    job_state: str
    state: OutcomeState
    code: ExitCode
    results: Path | None = None
    verdict: Verdict | None = None
    reason: str = ""
    metrics: str = ""
    is_permanent: bool = False

    @property
    def line(self) -> str:
        """The outcome in one line, for programs and administrators."""
        return self.line_in("en")

    def line_in(self, language: Language) -> str:
        """Return the outcome in one line, for the job's log and for messages."""
        name = f" {self.job_name}" if self.job_name else ""
        ended = say("ended", language, state=self.job_state) if self.job_state else ""
        missing = where = ""
        if self.verdict is None:
            said = _without_verdict(self, language)
        else:
            said = self.verdict.headline(language)
            missing = say("missing", language, reason=self.reason) if self.reason else ""
            where = say("where", language, path=self.results / REPORT_NAME) if self.results else ""
        job = f"{self.job}{name}{ended}"
        return one_line(say("job", language, job=job, said=said, missing=missing, where=where))


def one_line(text: str) -> str:
    """Return the text without control characters, with which a job's name could forge a line."""
    return "".join(one if one.isprintable() else " " for one in text)


def _without_verdict(outcome: Outcome, language: Language) -> str:
    if outcome.state == "failed":
        return say("not_analysed", language, reason=outcome.reason)
    return translated(outcome.reason, language)


def outcome_document(outcome: Outcome) -> Mapping[str, object]:
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
        "verdict": asdict(verdict) if verdict else None,
    }


def outcome_text(outcome: Outcome) -> str:
    """Return the outcome file's text."""
    return json.dumps(outcome_document(outcome), indent=1) + "\n"


def outcome_to_line(outcome: Outcome) -> str:
    """Return everything of the outcome as one line, for the process that started us."""
    further = {"metrics": outcome.metrics, "is_permanent": outcome.is_permanent}
    return json.dumps({**outcome_document(outcome), **further}) + "\n"


def outcome_from_text(text: str) -> Outcome:
    """Return the outcome that `outcome_text` or `outcome_to_line` wrote.

    Raises:
        InputError: not such a text, or of another schema version.
    """
    from msgspec import convert  # noqa: PLC0415  most calls read none

    with read_as(f"not an outcome: {text[:80]!r}"):
        if len(text) > _MAX_LENGTH:
            raise InputError(f"{len(text)} characters are too many for an outcome")
        document = json_of(text)
        metrics = str(document.pop("metrics", ""))
        document = _bounded(document)
        if document["schema"] != SCHEMA:
            raise SchemaError(f"an outcome of schema {document['schema']!r}, {SCHEMA!r} wanted")
        job, verdict = document["job"], document["verdict"]
        return Outcome(
            job=str(job["id"]),
            job_name=str(job["name"]),
            job_state=str(job["state"]),
            state=_STATES[document["state"]],
            code=ExitCode(document["exit_code"]),
            results=Path(document["results"]) if document["results"] else None,
            verdict=convert(verdict, Verdict, strict=False) if verdict else None,
            reason=str(document["reason"]),
            metrics=metrics,
            is_permanent=bool(document.get("is_permanent", False)),
        )


def _bounded(value: Any) -> Any:
    """Return a JSON value with texts and lists of a length that people and records can bear."""
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    if isinstance(value, list):
        return [_bounded(one) for one in value[:_MAX_LIST]]
    return {name: _bounded(one) for name, one in value.items()} if isinstance(value, dict) else value


def without_names(outcome: Outcome, names: HostNames) -> Outcome:
    """Return the outcome with the hosts' numbers in place of their names, in all its sentences."""
    verdict = outcome.verdict
    if verdict is not None:
        findings = tuple(
            replace(one, summary=names.hidden(one.summary), summary_zh=names.hidden(one.summary_zh))
            for one in verdict.findings
        )
        problems, problems_zh = (
            tuple(map(names.hidden, texts)) for texts in (verdict.problems, verdict.problems_zh)
        )
        why, why_zh = names.hidden(verdict.why), names.hidden(verdict.why_zh)
        verdict = replace(
            verdict, findings=findings, problems=problems, problems_zh=problems_zh, why=why, why_zh=why_zh
        )
    return replace(outcome, reason=names.hidden(outcome.reason), verdict=verdict)
