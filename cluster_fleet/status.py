"""The state of the fleet: who is slow since when, repaired when, at what cost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from cluster_fleet.judging.evidence import Effect
from cluster_fleet.judging.judge import FEWEST_RUNS, Judged, effect_of, judge, kind_of
from cluster_fleet.judging.probes import CONFIRMED, place_of, probes_of
from cluster_fleet.records import History, RunLine, Unit
from cluster_fleet.store import Fleet
from cluster_fleet.story import Story
from cluster_run.said.chinese import in_chinese

MONTH_S = 30 * 86400.0
_WORST_FIRST = {"slow": 0, "intermittent": 1, "repaired": 2, "replaced": 2}


@dataclass(frozen=True)
class Status:
    """The fleet: those that are not simply healthy, the worst first, and how many there are at all.

    `n_unknown` are neither healthy nor slow as far as is known, `n_few` of them in too few runs; of those
    that were asked for, if any were.
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


@dataclass(frozen=True)
class _Beside:
    """Facts on units (by number) besides how slow they are.

    `hours` are the device-hours that findings which name them have cost, `n_month` in how many runs of the
    newest month. `found` is what a probe found, `clock` how much lower theirs is, `counters` those that count
    more than nine in ten do, `replaced_s` when another one took their place.
    """

    units: Mapping[int, Unit]
    hours: Mapping[int, float]
    n_month: Mapping[int, int]
    found: Mapping[int, str]
    clock: Mapping[int, float]
    counters: Mapping[str, frozenset[int]]
    replaced_s: Mapping[int, float]

    def story(self, judged: Judged, at: int, number: int, history: History) -> Story:
        """The story of a unit, by its place among those that are judged."""
        unit, course, metric = self.units[number], judged.course, history.metric
        is_log = kind_of(metric) in ("compute", "link")
        level, low, high = (
            float(np.expm1(one[at])) if is_log else float(one[at])
            for one in (judged.level, judged.low, judged.high)
        )
        # A device whose clock is lower by half of what it is slower needs cooling or power, no exchange.
        lower = self.clock.get(number, 0.0)
        by_clock = metric == "compute" and lower > 0.5 * max(float(judged.level[at]), 1e-3)
        is_link = metric.startswith("link:")
        story = Story(
            key=unit.known.key,
            name=unit.known.name,
            host=self.units.get(unit.host, unit).known.name,
            metric=metric,
            state=judged.state(at),
            level=level,
            low=low,
            high=high,
            n_runs=int(judged.n_now[at]),
            n_all=int(course.n_runs[at]),
            since_s=history.runs[int(max(course.segment[at], course.first[at], 0))].captured_s,
            last_s=unit.last_s,
            n_episodes=int(course.n_episodes[at]),
            is_born_slow=judged.is_born_slow(at),
            by_clock=by_clock,
            hours_lost=self.hours.get(number, 0.0),
            n_named=self.n_month.get(number, 0),
            counters=tuple(name for name, most in self.counters.items() if is_link and number in most),
            probe=self.found.get(number, ""),
        )
        if number in self.replaced_s and story.is_slow:
            return replace(story, state="replaced", since_s=self.replaced_s[number], probe="")
        return story


def status_of(fleet: Fleet, wanted: Callable[[Unit], bool] | None = None) -> Status:
    """Judge the fleet. With `wanted` list all of the units that it takes, the healthy ones too, and their
    hosts that are not: devices of a slow host are held against each other.
    """
    units, runs, metrics = fleet.units(), fleet.runs(), fleet.metrics()
    beside = _beside(fleet, units, runs, metrics)
    stories: list[Story] = []
    of_wanted = {one.host for one in units.values() if wanted is not None and wanted(one)}
    # Devices that are neither healthy nor slow, and whether they were in too few runs.
    unknown: dict[int, bool] = {}
    # A device that no run compared with others is in too few runs, not healthy.
    unmeasured = {number for number, one in units.items() if one.host >= 0}
    for metric in metrics:
        effect = effect_of(metric)
        if effect is None:
            continue
        history = fleet.history(metric)
        unmeasured.difference_update(history.units.tolist())
        for judged, at, number, is_device in _each(history, effect, units):
            state, n_runs = judged.state(at), int(judged.course.n_runs[at])
            if state == "unknown" and is_device:
                unknown[number] = n_runs < FEWEST_RUNS
            is_confirmed = metric == "compute" and beside.found.get(number) == CONFIRMED and n_runs > 0
            is_news = state not in ("healthy", "unknown") or is_confirmed
            is_asked = wanted is not None and wanted(units[number]) and n_runs > 0
            if is_asked or (is_news and (wanted is None or number in of_wanted)):
                stories.append(beside.story(judged, at, number, history))
    unknown |= dict.fromkeys(unmeasured, True)
    unknown = {one: is_few for one, is_few in unknown.items() if wanted is None or wanted(units[one])}
    of_host: dict[str, int] = defaultdict(int)
    for story in stories:
        of_host[story.host] += story.n_episodes
    n_devices = sum(one.host >= 0 for one in units.values())
    repeated = sorted(((name, n) for name, n in of_host.items() if n > 1), key=lambda one: -one[1])
    return Status(
        stories=tuple(sorted(stories, key=_order)),
        n_devices=n_devices,
        n_hosts=len(units) - n_devices,
        n_runs=len(runs),
        n_unknown=len(unknown),
        n_few=sum(unknown.values()),
        begin_s=runs[0].captured_s if runs else 0.0,
        end_s=runs[-1].captured_s if runs else 0.0,
        repeat_hosts=tuple(repeated),
    )


def _each(
    history: History, effect: Effect, units: Mapping[int, Unit]
) -> Iterator[tuple[Judged, int, int, bool]]:
    """Give each unit of a metric: as what it is judged, its place there, its number, whether it is a device.

    Slow devices of one host may share a cause: hosts are judged by what their devices have in common.
    """
    host = np.array([units[one].host for one in history.units.tolist()], np.int64)
    devices, shared, hosts = judge(history.samples, effect, host if history.metric == "compute" else None)
    for judged, numbers in ((devices, history.units), (shared, hosts)):
        for at, number in enumerate(numbers.tolist()):
            yield judged, at, number, judged is devices


def named(wanted: str) -> Callable[[Unit], bool]:
    """Return whether a unit is what a key, its name, a place as in `node017:5`, or its host's name says."""
    host, _, device = wanted.rpartition(":")
    names = (wanted, f"device {device} of {host}")
    return lambda unit: (
        wanted in (unit.known.key, in_chinese(unit.known.name))
        or unit.known.name in names
        or unit.known.name.endswith(f" of {wanted}")
    )


def _beside(
    fleet: Fleet, units: Mapping[int, Unit], runs: Sequence[RunLine], metrics: Sequence[str]
) -> _Beside:
    probes = probes_of(fleet.actions(), time.time())
    places = {
        number: place_of(units.get(one.host, one).known.name, one.known.name) for number, one in units.items()
    }
    hours, n_month = _costs(fleet, runs)
    return _Beside(
        units,
        hours,
        n_month,
        {number: probes[place] for number, place in places.items() if place in probes},
        _means(fleet, "clock") if "clock" in metrics else {},
        {
            one.partition(":")[2]: _most_of(_means(fleet, one))
            for one in metrics
            if one.startswith("counter:")
        },
        replaced(units),
    )


def replaced(units: Mapping[int, Unit]) -> dict[int, float]:
    """Return when units were exchanged: another one was first seen in their place after they were last seen.

    Two dies of one card may share a place, but not one after the other. The place of a host is its name.
    """
    places = {number: one.known.place if one.host >= 0 else one.known.name for number, one in units.items()}
    newest: dict[str, float] = {}
    for number, place in places.items():
        newest[place] = max(newest.get(place, 0.0), units[number].first_s)
    own = {number: newest[place] for number, place in places.items() if newest[place] > units[number].last_s}
    return {number: own[one.host] for number, one in units.items() if one.host in own} | own


def _order(story: Story) -> tuple[float, ...]:
    return (_WORST_FIRST.get(story.state, 3), -story.hours_lost, -story.level)


def _costs(fleet: Fleet, runs: Sequence[RunLine]) -> tuple[Mapping[int, float], Mapping[int, int]]:
    """Device-hours that findings have cost by the unit that they name, and in how many runs of this month."""
    by_number = {run.number: run for run in runs}
    newest = runs[-1].captured_s if runs else 0.0
    n_devices: dict[int, int] = fleet.sizes()
    hours: dict[int, float] = defaultdict(float)
    month: dict[int, set[int]] = defaultdict(set)
    for run, unit, share in fleet.costs():
        line = by_number.get(run)
        if line is None:  # it does not count, or was added meanwhile
            continue
        hours[unit] += max(share, 0.0) * line.hours * n_devices.get(run, 0)
        if newest - line.captured_s <= MONTH_S:
            month[unit].add(run)
    return hours, {unit: len(numbers) for unit, numbers in month.items()}


def _means(fleet: Fleet, metric: str) -> dict[int, float]:
    history = fleet.history(metric)
    samples = history.samples
    with np.errstate(invalid="ignore"):
        means = samples.sums(lambda part: samples.values[part]) / samples.sums(
            lambda part: samples.unit[part] >= 0
        )
    return dict(zip(history.units.tolist(), means.tolist(), strict=True))


def _most_of(means: Mapping[int, float]) -> frozenset[int]:
    """Return the units that count more than nine in ten do."""
    usual = float(np.quantile(list(means.values()), 0.9))
    return frozenset(unit for unit, mean in means.items() if mean > usual)
