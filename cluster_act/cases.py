"""Who is to be acted on: what the fleet knows, and the alarms of one run."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_act.values import Case
from cluster_fleet.remember import record_of
from cluster_fleet.status import Story, sentence, status_of
from cluster_fleet.store import Fleet

_DEVICE = re.compile(r"device (\d+) of ")
#: Findings that a device or host is to blame for; others are a matter of the job.
_OF_UNITS = frozenset({"slow_rank", "slow_host", "slow_nic"})


def cases_of_fleet(fleet: Fleet) -> list[Case]:
    """Return the devices and hosts that are slow over many runs, the costliest first; each once."""
    found = {story.key: _case(story) for story in reversed(status_of(fleet).stories) if story.is_slow}
    return list(reversed(found.values()))


def cases_of_run(run: Path, fleet: Fleet | None) -> list[Case]:
    """Return whom the alarms of a run name; those that the fleet knows to be slow are confirmed."""
    record = record_of(run)
    known = {one.key: one for one in record.units}
    confirmed = {} if fleet is None else {one.unit: one for one in cases_of_fleet(fleet)}
    found: dict[str, Case] = {}
    for finding in record.findings:
        if finding.kind not in _OF_UNITS:
            continue
        for key in finding.units:
            unit = known[key]
            host = known.get(unit.host_key, unit)
            one = Case(
                key, unit.name, host.name, device_of_reason(unit.name), finding.kind,
                f"{unit.name}: {finding.finding} of run {record.name}",
                f"{100 * finding.share:.1f} % of each step of that job", is_confirmed=False,
            )  # fmt: skip
            found.setdefault(key, confirmed.get(key, one))
    return list(found.values())


def _case(story: Story) -> Case:
    cost = f"{story.hours_lost:.1f} device-hours so far" if story.hours_lost else "no finding has a cost yet"
    return Case(
        story.key, story.name, story.host, device_of_reason(story.name), story.metric, sentence(story, "en"),
        cost, is_confirmed=True,
    )  # fmt: skip


def device_of_reason(name: str) -> int | None:
    """Return the number of a device whose name, or a sentence of it, begins with it; None for a host."""
    found = _DEVICE.match(name)
    return int(found[1]) if found else None
