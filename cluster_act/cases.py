"""Devices and hosts to act on, from the fleet or the alarms of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cluster_act.values import Case
from cluster_fleet.identity import Known, with_names
from cluster_fleet.judging.probes import device_number
from cluster_fleet.run_record import record_of
from cluster_fleet.status import replaced, status_of
from cluster_fleet.store import Fleet
from cluster_fleet.story import Story, story_fact
from cluster_run.kinds import UNIT_KINDS
from cluster_words.findings import story as story_phrase
from cluster_words.headings import of_act, of_fleet
from cluster_words.phrase import Phrase


def cases_of_fleet(fleet: Fleet) -> list[Case]:
    """Return the devices and hosts that are slow over many runs, the costliest first; each once.

    Those that a probe cleared are among them, so that the plan says why nothing is done.
    """
    by_number = fleet.units()
    units = [one.known for one in by_number.values()]
    gone = replaced(by_number)
    hosts = Counter(one.known.name for at, one in by_number.items() if one.host < 0 and at not in gone)
    found = {
        story.key: _case(story, units, has_namesake=hosts[story.host] > 1)
        for story in reversed(status_of(fleet).stories)
        if story.is_slow or story.is_cleared
    }
    return list(reversed(found.values()))


def cases_of_run(run: Path, fleet: Fleet | None) -> list[Case]:
    """Return the devices and hosts of a run's alarms; those that the fleet knows to be slow are confirmed.

    Hosts that the run calls by hashes have the names that the fleet knows.
    """
    record = record_of(run)
    names = {} if fleet is None else {one.known.key: one.known.name for one in fleet.units().values()}
    units = with_names(record.units, names)
    known = {one.key: one for one in units}
    confirmed = {} if fleet is None else {one.unit: one for one in cases_of_fleet(fleet)}
    found: dict[str, Case] = {}
    for finding in (one for one in record.findings if one.kind in UNIT_KINDS):
        for key in finding.units:
            unit = known[key]
            host = known.get(unit.host_key, unit)
            one = Case(
                key, unit.name, host.name, device_number(unit.name),
                of_act("of_run", unit=unit.name, finding=finding.finding, run=record.name),
                of_act("share", share=finding.share), is_confirmed=False,
                devices=devices_of(key, units),
            )  # fmt: skip
            found.setdefault(key, confirmed.get(key, one))
    return list(found.values())


def why_nobody(run: Path | None, fleet: Fleet | None) -> Phrase | None:
    """Return why the cases are unknown, if there is none; None if there is nothing to act on."""
    if run is not None:
        return of_act("unjudged") if record_of(run).verdict == "unknown" else None
    return of_fleet("empty") if fleet is not None and not fleet.runs() else None


def _case(story: Story, units: Iterable[Known], *, has_namesake: bool) -> Case:
    hours = story.hours_lost
    cost = of_act("cost", hours=hours) if hours else of_act("cost_unknown")
    return Case(
        story.key, story.name, story.host, device_number(story.name),
        story_phrase(story_fact(story)),
        cost, is_confirmed=True, devices=devices_of(story.key, units), has_namesake=has_namesake,
    )  # fmt: skip


def devices_of(key: str, units: Iterable[Known]) -> tuple[int, ...]:
    """Return the numbers that the driver has for a device, or for all devices of a host that are known.

    Where it told none they are those of the rank table.
    """
    own = (one for one in units if key in (one.key, one.host_key))
    numbers = (device_number(one.name) if one.physical is None else one.physical for one in own)
    return tuple(sorted({one for one in numbers if one is not None}))
