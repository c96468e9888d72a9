"""What the fleet knows of a run's devices before it is judged: stories, and how probably each is slow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from cluster_fleet.cli import open_fleet
from cluster_fleet.identity import hosts_of_run
from cluster_fleet.judging.judge import EFFECTS
from cluster_fleet.judging.probes import CLEARED, CONFIRMED, device_number
from cluster_fleet.run_record import fingerprint, units_of
from cluster_fleet.status import status_of
from cluster_fleet.story import Story

#: Probabilities per job: that a healthy device turns slow, that a slow one stays slow (no unseen repair), and
#: that an intermittently slow one is slow.
_TURNS_SLOW, _STAYS_SLOW, _NOW_AND_THEN = 0.001, 0.95, 0.25
_PROBED = {CONFIRMED: _STAYS_SLOW, CLEARED: _TURNS_SLOW}
#: Both ends of an interval that holds the truth in 95 % are as many standard errors apart.
_WIDTH = 2 * 1.96


@dataclass(frozen=True)
class Before:
    """What other runs than this one say of its units.

    Attributes:
        stories: of devices by rank, the worst of each metric first.
        hosts: of hosts, by the run's own number of each.
        p_slow: how probably the device of a rank, or its host, computes slowly; only where enough is known.
    """

    stories: Mapping[int, Sequence[Story]]
    hosts: Mapping[str, Sequence[Story]]
    p_slow: Mapping[int, float]


def known_before(
    where: str, run: Path, ranks: pa.Table, steps: pa.Table, captured: str | None, *, show_addresses: bool
) -> Before:
    """Ask the fleet what it knows of a run's devices, without the run itself where it is known already.

    Args:
        where: the database.
        run: the run directory, which says which hosts its ranks ran on.
        ranks: rank, host and device.
        steps: what the run is recognised by.
        captured: when it was recorded.
        show_addresses: hosts are called as the fleet does, not by their numbers in the run.

    Raises:
        InputError: the database cannot be read, or its hosts are unknown.
    """
    places = hosts_of_run(run, show_addresses=show_addresses)
    by_rank, hosts = units_of(ranks, places)
    wanted = {one.key for one in by_rank.values()} | set(hosts)
    with open_fleet(where, without=fingerprint(captured, by_rank, steps)) as fleet:
        status = status_of(fleet, lambda unit: unit.known.key in wanted)
    # The run's own numbers of its hosts: whatever the fleet calls them, a report names none unasked.
    called = {one.key: f"host {number}" for number, one in places.hosts.items()}
    called |= {
        one.key: f"device {device_number(one.name)} of {called[one.host_key]}" for one in by_rank.values()
    }
    stories: dict[str, list[Story]] = {}
    for story in (one for one in status.stories if one.key in called):
        shown = story if show_addresses else replace(story, name=called[story.key])
        stories.setdefault(story.key, []).append(shown)
    p_slow = {}
    for rank, device in by_rank.items():
        own = [*stories.get(device.key, ()), *stories.get(device.host_key, ())]
        known = [p for one in own if (p := probably_slow(one)) is not None]
        if known:
            p_slow[rank] = max(known)
    return Before(
        {rank: stories[one.key] for rank, one in by_rank.items() if one.key in stories},
        {number: stories[one.key] for number, one in places.hosts.items() if one.key in stories},
        p_slow,
    )


def probably_slow(story: Story) -> float | None:
    """Return how probably a unit computes slowly in its next job; None where the fleet does not know."""
    if story.metric != "compute":
        return None
    if story.probe in _PROBED:
        return _PROBED[story.probe]
    if story.state == "unknown":
        return None
    if story.state == "intermittent":
        return _NOW_AND_THEN
    low, high, level = (math.log1p(one) for one in (story.low, story.high, story.level))
    error = max(high - low, 1e-6) / _WIDTH
    is_slow = 0.5 * math.erfc((EFFECTS["compute"].middle - level) / error / math.sqrt(2))
    return _TURNS_SLOW + (_STAYS_SLOW - _TURNS_SLOW) * is_slow
