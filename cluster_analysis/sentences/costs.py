"""Cost of a finding a step, as one value that headline, split, list, ticket and console all render."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster_run.findings import Finding, FindingsDocument
from cluster_words.amounts import format_ms, format_share
from cluster_words.headings import say
from cluster_words.phrase import Phrase

#: A smaller share of the step would be written as 0.0 %.
_NOTHING_SHARE = 0.0005


@dataclass(frozen=True)
class Cost:
    """From `low_ms` to `high_ms` a step. Without `low_ms` only the bound is known, without both nothing.

    If it `is_least`, missing ranks may make it more: both ends are the lower one.
    """

    low_ms: float | None
    high_ms: float | None
    is_least: bool = False

    @property
    def is_known(self) -> bool:
        """Whether anything is known of it, be it a bound."""
        return self.high_ms is not None

    def is_nothing(self, step_ms: float | None) -> bool:
        """Return whether it would be written as 0.0 % of the step."""
        is_small = self.high_ms is not None and self.high_ms < _NOTHING_SHARE * (step_ms or 0.0)
        return is_small and not self.is_least

    def phrase(self, step_ms: float | None = None) -> Phrase:
        """Return `79.8 ms`, `28.8–31.4 ms`, `up to 55.3 ms`, `at least 28.8 ms`, or that it is not known.

        A lower end that is nothing of a step of `step_ms` is no news. Up to 0 is 0.
        """
        if self.high_ms is None:
            return say("unknown_cost")
        return self._range(step_ms, format_ms)

    def share(self, step_ms: float | None) -> Phrase:
        """Return it as a share of the step; `?` where that is not known."""
        if self.high_ms is None or not step_ms:
            return Phrase("?", "?")
        return self._range(step_ms, lambda ms: format_share(ms / step_ms))

    def _range(self, step_ms: float | None, written: Callable[[float], str]) -> Phrase:
        assert self.high_ms is not None
        if self.is_least:
            return say("at_least", least=written(self.high_ms))
        return _range(self._shown(step_ms), self.high_ms, written)

    def _shown(self, step_ms: float | None) -> float | None:
        if self.high_ms == 0:
            return 0.0
        is_no_news = Cost(self.low_ms, self.low_ms).is_nothing(step_ms) and not self.is_nothing(step_ms)
        return self.low_ms if self.low_ms and not is_no_news else None


def cost_of(finding: Finding | None) -> Cost:
    """Return what a finding costs a step: what it saves alone, and once all others are put right."""
    if finding is None:
        return Cost(None, None)
    return cost_between(
        finding.cost_ms_per_step,
        finding.cost_low_ms,
        finding.cost_high_ms,
        is_least=any(one.kind == "cost_at_least" for one in finding.facts),
        is_most=any(one.kind == "cost_is_bound" for one in finding.facts),
    )


def cost_between(
    alone_ms: float | None, low_ms: float | None, high_ms: float | None, *, is_least: bool, is_most: bool
) -> Cost:
    """Return the cost of a finding that saves `alone_ms`, and `low_ms` to `high_ms` with others repaired.

    It is at least that, or at most: a bound without a replay.
    """
    if alone_ms is None or is_most:
        return Cost(None, high_ms)
    least_ms = alone_ms if low_ms is None else low_ms
    if is_least:
        return Cost(least_ms, least_ms, is_least) if least_ms else Cost(None, None)
    return Cost(least_ms, alone_ms if high_ms is None else high_ms)


def costliest_ms(document: FindingsDocument) -> float:
    """Return the largest cost of a document in ms, for bars beside each other; 0 where none is known."""
    return max((cost_of(one).high_ms or 0.0 for one in document.findings), default=0.0)


def _range(low_ms: float | None, high_ms: float, written: Callable[[float], str]) -> Phrase:
    """Join two amounts; two that are written alike are one."""
    high = written(high_ms)
    if low_ms is None:
        return say("at_most", most=high)
    low = written(low_ms)
    if low == high:
        return Phrase(high, high)
    number, unit = low.rsplit(" ", 1)
    return say("from_to", low=number if high.endswith(f" {unit}") else low, high=high)
