"""findings.json as the hook needs it: the verdict, and one line that says what matters."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_analysis.sentences import verdicts
from cluster_analysis.sentences.costs import cost_between
from cluster_analysis.sentences.subjects import place_phrase
from cluster_run.findings import ALARMS, Finding, FindingsDocument
from cluster_run.problem import Problem
from cluster_run.said.chinese import COLON, COMMA, Language
from cluster_words import findings, problems
from cluster_words.headings import of_message
from cluster_words.phrase import Phrase
from cluster_words.terms import VERDICT_SIGNS

#: Records of requests are kept for a month: thousands of broken captures are a number in them.
_N_PROBLEMS = 20


def say(key: str, language: Language, **values: object) -> str:
    """Return a sentence of a message."""
    return of_message(key, **values).of(language)


@dataclass(frozen=True)
class FindingLine:
    """One finding, as a message shows it. Costs are None where they are not known."""

    id: str
    kind: str
    severity: str
    summary: str
    cost_ms_per_step: float | None
    cost_share: float | None
    #: Its place, as in every report: `rank 13 = host 2 / device 5`.
    places: tuple[str, ...] = ()
    summary_zh: str = ""
    places_zh: tuple[str, ...] = ()
    #: Its lower and upper cost, with other repairs too.
    cost_low_ms: float | None = None
    cost_high_ms: float | None = None
    #: Whether it may be more, which ranks that are not there would tell.
    costs_at_least: bool = False
    #: Whether only a bound is known, as nothing could be replayed.
    costs_at_most: bool = False

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should look at it: a warning or worse."""
        return self.severity in ALARMS

    def text(self, language: Language = "en") -> str:
        """Return the summary with its cost, and where it is."""
        said = (self.summary_zh if language == "zh" else "") or self.summary
        where = self._where(language) if self.places else ""
        cost = cost_between(
            self.cost_ms_per_step,
            self.cost_low_ms,
            self.cost_high_ms,
            is_least=self.costs_at_least,
            is_most=self.costs_at_most,
        )
        if not cost.is_known:
            return said + where
        # The mean step, which a line does not hold itself.
        step_ms = (
            self.cost_ms_per_step / self.cost_share if self.cost_ms_per_step and self.cost_share else None
        )
        share = say("share", language, share=cost.share(step_ms).of(language)) if step_ms else ""
        shown = cost.phrase(step_ms).of(language)
        return say("cost", language, said=said.rstrip(".。"), cost=shown, share=share) + where

    def _where(self, language: Language) -> str:
        if language == "zh" and self.places_zh:
            return f"{'；'.join(self.places_zh)}。"
        return f" {'; '.join(self.places)}."


@dataclass(frozen=True)
class Verdict:
    """Result of an analysis. `problems` are the first of the `n_problems` things that could not be used.

    `why` is the reason for which nothing could be told.
    """

    verdict: str
    ranks: int
    expected_ranks: int
    findings: tuple[FindingLine, ...]
    problems: tuple[str, ...]
    problems_zh: tuple[str, ...] = ()
    n_problems: int = 0
    why: str = ""
    why_zh: str = ""

    @property
    def alarms(self) -> tuple[FindingLine, ...]:
        """The findings somebody should look at, the most expensive first."""
        return tuple(finding for finding in self.findings if finding.is_alarm)

    def headline(self, language: Language = "en") -> str:
        """Return the verdict in one line."""
        alarms = self.alarms
        why = (self.why_zh if language == "zh" else "") or self.why
        ranks = {"n": self.ranks, "expected": self.expected_ranks}
        if alarms:
            parts = [alarms[0].text(language)]
            parts += [say("more", language, n=len(alarms) - 1)] if len(alarms) > 1 else []
        elif self.verdict == "unknown":
            parts = [say("could_not_tell", language, why=why or say("analysed", language, **ranks))]
        else:
            parts = [say("nothing", language, **ranks)]
        shown = (self.problems_zh if language == "zh" else ()) or self.problems
        if shown:
            n = max(self.n_problems, len(shown))
            parts.append(say("problems", language, n=n, first=shown[0]))
        rest = ("" if language == "zh" else " ").join(parts)
        # One that is not known keeps its own name.
        name = say(self.verdict, language) if self.verdict in VERDICT_SIGNS else self.verdict
        return say("headline", language, verdict=name, rest=rest)


def verdict_of(document: FindingsDocument) -> Verdict:
    """Return what messages tell of findings.json."""
    told = document.problems[:_N_PROBLEMS]
    why = verdicts.unknown_reason(document) if document.verdict == "unknown" else Phrase("", "")
    return Verdict(
        verdict=document.verdict,
        ranks=document.run.ranks,
        expected_ranks=document.run.expected_ranks,
        findings=tuple(map(_finding, document.findings)),
        problems=tuple(_problem(one, "en") for one in told),
        problems_zh=tuple(_problem(one, "zh") for one in told),
        n_problems=len(document.problems),
        why=why.en,
        why_zh=why.zh,
    )


def _finding(finding: Finding) -> FindingLine:
    said, places = findings.summary(finding), tuple(map(place_phrase, finding.named_places))
    return FindingLine(
        id=finding.id,
        kind=finding.kind,
        severity=finding.severity,
        summary=said.en,
        cost_ms_per_step=finding.cost_ms_per_step,
        cost_share=finding.cost_share,
        places=tuple(place.en for place in places),
        summary_zh=said.zh,
        places_zh=tuple(place.zh for place in places),
        cost_low_ms=finding.cost_low_ms,
        cost_high_ms=finding.cost_high_ms,
        costs_at_least=any(one.kind == "cost_at_least" for one in finding.facts),
        costs_at_most=any(one.kind == "cost_is_bound" for one in finding.facts),
    )


def _problem(problem: Problem, language: Language) -> str:
    where = [say("host", language, host=problem.host)] if problem.host is not None else []
    where += [say("rank", language, rank=problem.rank)] if problem.rank is not None else []
    where += [problem.file] if problem.file else []
    colon, comma = (marks[int(language == "zh")] for marks in (COLON, COMMA))
    why = problems.reason(problem).of(language).rstrip(".。")
    return colon.join([*([comma.join(where)] if where else []), why])
