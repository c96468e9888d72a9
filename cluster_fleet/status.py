"""The state of the fleet, as rows and sentences: who is slow since when, repaired when, at what cost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

import numpy as np

from cluster_analysis.sentences.findings import story as story_phrase
from cluster_fleet.judging.judge import FEWEST_RUNS, Judged, State, effect_of, judge
from cluster_fleet.judging.probes import CLEARED, CONFIRMED, Probe, place_of, probes_of
from cluster_fleet.records import History, RunLine, Unit
from cluster_fleet.store import Fleet
from cluster_run.facts import Fact, FleetFact, fact
from cluster_run.said.chinese import Language

MONTH_S = 30 * 86400.0
_WORST_FIRST = {"slow": 0, "intermittent": 1, "repaired": 2}


@dataclass(frozen=True)
class Story:
    """One unit in one metric. `level` is how much slower it is (a share of the time, or of the step).

    `low` and `high` hold it in 95 %. `since_s` is when the present state began, `n_runs` the runs since then,
    `n_episodes` how often it was slow, `hours_lost` device-hours that findings that name it have cost.
    `n_named` of its runs in the 30 days up to the newest run named it. `counters` of a slow link count
    more than nine in ten do. `is_born_slow`: from its first run on. `probe` is what a probe found that
    still counts.
    """

    key: str
    name: str
    host: str
    metric: str
    state: State
    level: float
    low: float
    high: float
    n_runs: int
    n_all: int
    since_s: float
    last_s: float
    n_episodes: int
    is_born_slow: bool
    by_clock: bool
    hours_lost: float
    n_named: int
    counters: tuple[str, ...] = ()
    probe: str = ""

    @property
    def is_slow(self) -> bool:
        """Whether somebody should act: by a probe, else by its jobs."""
        return self.probe == CONFIRMED or (self._is_slow_in_jobs and self.probe != CLEARED)

    @property
    def is_cleared(self) -> bool:
        """Whether its jobs say that it is slow, and a probe does not."""
        return self._is_slow_in_jobs and self.probe == CLEARED

    @property
    def _is_slow_in_jobs(self) -> bool:
        return self.state in ("slow", "intermittent")


@dataclass(frozen=True)
class Status:
    """The fleet: those that are not simply healthy, the worst first, and how many there are at all.

    `n_unknown` are neither healthy nor slow as far as is known, `n_few` of them in too few runs.
    """

    stories: tuple[Story, ...]
    n_devices: int
    n_hosts: int
    n_runs: int
    n_unknown: int
    n_few: int
    begin_s: float
    end_s: float
    repeat_hosts: tuple[tuple[str, int], ...]

    @property
    def unknown(self) -> dict[str, int]:
        """What is printed of those that cannot be judged yet."""
        return {"n": self.n_unknown, "n_few": self.n_few, "n_between": self.n_unknown - self.n_few}

    def plain(self) -> dict[str, object]:
        """Return it for JSON."""
        return {"schema": "cluster-fleet-status/1", **asdict(self)}


def status_of(fleet: Fleet, wanted: Callable[[Unit], bool] | None = None, without: str = "") -> Status:
    """Judge the fleet. With `wanted` list all of the units that it takes, the healthy ones too.

    `without` is the fingerprint of a run that does not count.
    """
    units, runs, metrics = fleet.units(), fleet.runs(), fleet.metrics()
    costs = _costs(fleet, runs, units)
    probes = probes_of(fleet.actions(), time.time())
    clock = _means(fleet, "clock") if "clock" in metrics else {}
    counted = {
        one.partition(":")[2]: _most_of(_means(fleet, one)) for one in metrics if one.startswith("counter:")
    }
    replaced_s = _replaced(units)
    stories: list[Story] = []
    unknown: dict[int, bool] = {}
    measured: set[int] = set()
    for metric in metrics:
        effect = effect_of(metric)
        if effect is None:
            continue
        history = fleet.history(metric, without)
        measured.update(history.units.tolist())
        host = np.array([units[one].host for one in history.units.tolist()], np.int64)
        is_of_devices = metric == "compute"
        devices, shared, hosts = judge(
            history.values, history.errors, effect, host if is_of_devices else None
        )
        for judged, numbers in ((devices, history.units), (shared, hosts)):
            for at, number in enumerate(numbers.tolist()):
                state = judged.state(at)
                if state == "unknown" and judged is devices:
                    unknown[number] = bool(judged.course.n_runs[at] < FEWEST_RUNS)
                is_reported = state not in ("healthy", "unknown")
                if metric == "compute" and probes:
                    is_reported |= _found(probes, units, number) == CONFIRMED and judged.course.n_runs[at] > 0
                if wanted is not None:
                    is_reported = wanted(units[number]) and judged.course.n_runs[at] > 0
                if is_reported:
                    story = replace(
                        _story(judged, at, units, number, history, costs, clock),
                        probe=_found(probes, units, number),
                    )
                    if number in replaced_s and story.is_slow:
                        story = replace(story, state="repaired", since_s=replaced_s[number], probe="")
                    if metric.startswith("link:"):
                        own = tuple(name for name, most in counted.items() if number in most)
                        story = replace(story, counters=own)
                    stories.append(story)
    # A device that no run compared with others is in too few runs, not healthy.
    unknown |= {number: True for number, one in units.items() if one.host >= 0 and number not in measured}
    slow_hosts: dict[str, int] = defaultdict(int)
    for story in stories:
        slow_hosts[story.host] += story.n_episodes
    devices_in_all = sum(one.host >= 0 for one in units.values())
    return Status(
        tuple(sorted(stories, key=_order)),
        devices_in_all,
        len(units) - devices_in_all,
        len(runs),
        len(unknown),
        sum(unknown.values()),
        runs[0].captured_s if runs else 0.0,
        runs[-1].captured_s if runs else 0.0,
        tuple(sorted(((name, n) for name, n in slow_hosts.items() if n > 1), key=lambda one: -one[1])),
    )


def named(wanted: str) -> Callable[[Unit], bool]:
    """Return whether a unit is what a key, its name, or its host's name says."""
    return lambda unit: (
        wanted in (unit.known.key, unit.known.name) or unit.known.name.endswith(f" of {wanted}")
    )


def _found(probes: Mapping[str, Probe], units: Mapping[int, Unit], number: int) -> str:
    unit = units[number]
    host = units.get(unit.host, unit)
    probe = probes.get(place_of(host.known.name, unit.known.name))
    return "" if probe is None else probe.found


def _replaced(units: Mapping[int, Unit]) -> dict[int, float]:
    """Return when units were exchanged: another one was first seen in their place after they were last seen.

    Two dies of one card may share a place, but not one after the other.
    """
    newest: dict[str, float] = {}
    for unit in units.values():
        newest[unit.known.place] = max(newest.get(unit.known.place, 0.0), unit.first_s)
    return {
        number: newest[unit.known.place]
        for number, unit in units.items()
        if newest[unit.known.place] > unit.last_s
    }


def _order(story: Story) -> tuple[float, ...]:
    return (_WORST_FIRST.get(story.state, 3), -story.hours_lost, -story.level)


@dataclass(frozen=True)
class _Cost:
    hours: float
    n_month: int


def _costs(fleet: Fleet, runs: Sequence[RunLine], units: Mapping[int, Unit]) -> dict[int, _Cost]:
    """Device-hours that findings have cost by the unit that they name, and in how many runs of this month."""
    by_number = {run.number: run for run in runs}
    newest = runs[-1].captured_s if runs else 0.0
    n_devices: dict[int, int] = fleet.sizes()
    hours: dict[int, float] = defaultdict(float)
    month: dict[int, set[int]] = defaultdict(set)
    for run, unit, _kind, share in fleet.costs():
        line = by_number[run]
        hours[unit] += max(share, 0.0) * line.hours * n_devices.get(run, 0)
        if newest - line.captured_s <= MONTH_S:
            month[unit].add(run)
    return {unit: _Cost(hours[unit], len(month[unit])) for unit in hours if unit in units}


def _means(fleet: Fleet, metric: str) -> dict[int, float]:
    history = fleet.history(metric)
    with np.errstate(invalid="ignore"):
        return dict(zip(history.units.tolist(), np.nanmean(history.values, axis=0).tolist(), strict=True))


def _most_of(means: Mapping[int, float]) -> frozenset[int]:
    """Return the units that count more than nine in ten do."""
    usual = float(np.quantile(list(means.values()), 0.9))
    return frozenset(unit for unit, mean in means.items() if mean > usual)


def _story(
    judged: Judged, at: int, units: Mapping[int, Unit], number: int,
    history: History, costs: Mapping[int, _Cost], clock: Mapping[int, float],
) -> Story:  # fmt: skip
    unit, course, runs = units[number], judged.course, history.runs
    host = units.get(unit.host, unit)
    is_log = history.metric.partition(":")[0] in ("compute", "link")
    level, low, high = (
        float(np.expm1(one[at])) if is_log else float(one[at])
        for one in (judged.level, judged.low, judged.high)
    )
    cost = costs.get(number, _Cost(0.0, 0))
    return Story(
        key=unit.known.key,
        name=unit.known.name,
        host=host.known.name,
        metric=history.metric,
        state=judged.state(at),
        level=level,
        low=low,
        high=high,
        n_runs=int(judged.n_now[at]),
        n_all=int(course.n_runs[at]),
        since_s=runs[int(max(course.segment[at], course.first[at], 0))].captured_s,
        last_s=unit.last_s,
        n_episodes=int(course.n_episodes[at]),
        is_born_slow=judged.is_born_slow(at),
        # A device whose clock is lower by half of what it is slower needs cooling or power, no exchange.
        by_clock=history.metric == "compute"
        and clock.get(number, 0.0) > 0.5 * max(float(judged.level[at]), 1e-3),
        hours_lost=cost.hours,
        n_named=cost.n_month,
    )


def story_fact(story: Story) -> Fact:
    """Return what is said of a unit, as a run's finding quotes it."""
    kind: FleetFact = f"fleet_{story.state}"  # type: ignore[assignment]
    return fact(
        kind, unit=story.name, metric=story.metric, level=story.level, low=story.low, high=story.high,
        n_runs=story.n_all if story.state == "intermittent" else story.n_runs, since=day(story.since_s),
        is_born=story.is_born_slow, n_episodes=max(story.n_episodes, 1), by_clock=story.by_clock,
        n_named=story.n_named, counters=story.counters,
        is_confirmed=story.probe == CONFIRMED, is_cleared=story.probe == CLEARED,
    )  # fmt: skip


def sentence(story: Story, language: Language) -> str:
    """Return what is said of a unit in a language."""
    return story_phrase(story_fact(story)).of(language)


def day(seconds: float) -> str:
    """Return the date of a time, UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
