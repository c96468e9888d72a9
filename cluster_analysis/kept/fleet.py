"""Asks the fleet about a run's devices: the answer counts when the run is judged, and is quoted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.options import AnalyseOptions
from cluster_run.errors import ClusterError, extra, in_words
from cluster_run.facts import Fact, fact
from cluster_run.findings import Finding
from cluster_run.kinds import KINDS

if TYPE_CHECKING:
    from cluster_fleet.story import Story

#: With more ranks than this a finding is not about single devices.
_MOST_QUOTED = 2


class FleetMemory(Struct, frozen=True):
    """Knowledge from other runs: probabilities by rank, stories by rank and host; empty without a fleet."""

    p_slow: Mapping[int, float] = field(default_factory=dict)
    stories: Mapping[int, Sequence[Story]] = field(default_factory=dict)
    hosts: Mapping[str, Sequence[Story]] = field(default_factory=dict)
    notes: tuple[Fact, ...] = ()

    def quoted(self, finding: Finding) -> Finding:
        """Return the finding with what the fleet knows of the devices and hosts that it names."""
        kind = KINDS[finding.kind]
        if not kind.is_fault:
            return finding
        if kind.subject == "host":
            found = [self.hosts.get(str(one), ()) for one in finding.hosts]
        else:
            ends = [end for link in finding.links for end in (link.src, link.dst)]
            found = [self.stories.get(int(one), ()) for one in dict.fromkeys((*finding.ranks, *ends))]
        if not 0 < len(found) <= _MOST_QUOTED:
            return finding
        metric = "link:" if kind.part == "communication" else "compute"
        said = [one for stories in found for one in stories if one.metric.startswith(metric) or one.is_slow]
        return replace(finding, facts=(*finding.facts, *map(_fact, said)))

    def unnamed(self, findings: Iterable[Finding]) -> tuple[Fact, ...]:
        """Return a note on devices that are slow over many runs and that no finding names."""
        findings = list(findings)
        ranks = {int(rank) for one in findings for rank in one.ranks}
        hosts = {str(host) for one in findings for host in one.hosts if KINDS[one.kind].subject == "host"}
        units = [
            *(story.name for rank, own in self.stories.items() for story in own
              if story.is_slow and rank not in ranks),
            *(story.name for host, own in self.hosts.items() for story in own
              if story.is_slow and host not in hosts),
        ]  # fmt: skip
        return (fact("fleet_names_others", units=tuple(dict.fromkeys(units))),) if units else ()


def asked_of_fleet(
    options: AnalyseOptions, ranks: pa.Table, steps: pa.Table, captured: str | None
) -> FleetMemory:
    """Ask the fleet, if there is one; a note says why it cannot be asked: no analysis is lost by that."""
    if not options.fleet:
        return FleetMemory()
    try:
        with extra("fleet"):
            from cluster_fleet.prior import known_before  # noqa: PLC0415 - an extra, that few have

        known = known_before(
            options.fleet, options.run, ranks, steps, captured, show_addresses=options.show_addresses
        )
    except (ClusterError, OSError) as error:
        return FleetMemory(notes=(fact("fleet_not_asked", why=in_words(error).splitlines()[0]),))
    notes = () if known.stories or known.hosts else (fact("fleet_knows_none"),)
    return FleetMemory(known.p_slow, known.stories, known.hosts, notes)


def _fact(story: Story) -> Fact:
    from cluster_fleet.story import story_fact  # noqa: PLC0415 - as above

    return story_fact(story)
