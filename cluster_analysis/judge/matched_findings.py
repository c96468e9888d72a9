"""Findings of two runs of one job, matched: what is fixed, what is still there, what is new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from cluster_run.findings import Finding


class Matched(Struct, frozen=True):
    """A finding of the older run, of the newer one, or of both; never of neither."""

    before: Finding | None
    after: Finding | None

    @property
    def state(self) -> Literal["fixed", "still", "new"]:
        """Its state in the newer run."""
        if self.after is None:
            return "fixed"
        return "still" if self.before is not None else "new"

    @property
    def finding(self) -> Finding:
        """The finding as it is now, or was."""
        found = self.after or self.before
        assert found is not None
        return found


def match_findings(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Matched, ...]:
    """Match what either run alarms of; new and remaining ones by their cost now, then those that are gone.

    A finding is the same by its id, or by its kind where it names some of the same ranks: a link may be named
    from one end or the other. Information in one run matches an alarm in the other.
    """
    old, new = list(before), list(after)
    pairs = []
    for finding in new:
        partner = _partner(finding, old)
        if partner is not None:
            old.remove(partner)
        if finding.is_alarm or (partner is not None and partner.is_alarm):
            pairs.append(Matched(partner, finding))
    gone = [Matched(finding, None) for finding in old if finding.is_alarm]
    return (*pairs, *gone)


def _partner(finding: Finding, candidates: Sequence[Finding]) -> Finding | None:
    alike = [one for one in candidates if one.kind == finding.kind]
    by_id = [one for one in alike if one.id == finding.id]
    by_place = [
        one for one in alike if set(one.ranks) & set(finding.ranks) and set(one.hosts) == set(finding.hosts)
    ]
    # The workload's own findings name the whole job: there is one of a kind.
    is_whole = not finding.record.is_fault
    return next(iter((*by_id, *by_place, *(alike if is_whole else ()))), None)
