"""The step at which a capture begins on all hosts: late enough for each of them to hear of it.

The step counter of a job is read at different moments on different hosts. A host has
points (time, step) and a rate; all times here are by one clock, ours.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster_run.ids import HostId

#: Steps beyond what times say: a counter is looked at in the middle of a step, and again at the end of one.
_MORE_STEPS = 2
#: A host's poll may have begun just before we sent; one second is what cutting times to seconds may cost.
_MORE_S = 1.0
#: Hosts in lock step have the same step but for what was read at different moments: this much time.
TOLERANCE_S = 1.5
_TOLERANCE_STEPS = 3
_LEAST_SPAN_S = 1.0
#: No step is shorter.
_SHORTEST_STEP_S = 1e-4


@dataclass(frozen=True)
class Point:
    """A host was seen at a step, at a time in seconds."""

    at_s: float
    step: int


@dataclass(frozen=True)
class Pace:
    """How far a host is, how long its steps take at least, and how often it looks for a configuration."""

    last: Point
    step_s: float
    poll_s: float

    def step_at(self, at_s: float) -> float:
        """Return the step that it may have reached at a time."""
        return self.last.step + max(0.0, at_s - self.last.at_s) / self.step_s


def pace_of(points: Sequence[Point], poll_s: float) -> Pace:
    """Return the pace of a host from at least two points at different steps.

    The shortest mean step counts, of all time since the first point and of each span between two points. A
    host that is taken for faster than it is starts later; one that is taken for slower starts too late. Spans
    of less than a second say more of how late a line was written than of a step.

    Raises:
        ValueError: fewer than two steps were seen.
    """
    seen = sorted(points, key=lambda one: (one.at_s, one.step))
    if len(seen) < 2 or seen[-1].at_s <= seen[0].at_s:
        raise ValueError("it was seen at one step only")
    least_s = min(_LEAST_SPAN_S, seen[-1].at_s - seen[0].at_s)
    spans = [
        (last.at_s - first.at_s) / (last.step - first.step)
        for first, last in ((seen[0], seen[-1]), *itertools.pairwise(seen))
        if last.step > first.step and last.at_s - first.at_s >= least_s
    ]
    if not spans:
        raise ValueError("it was seen at one step only")
    return Pace(seen[-1], max(_SHORTEST_STEP_S, min(spans)), poll_s)


@dataclass(frozen=True)
class Start:
    """The common start, and the hosts that are at other steps.

    Every host hears of it within `hear_s`, and it comes after about `wait_s`, both counted from the choice.
    """

    step: int
    hear_s: float
    wait_s: float
    strays: Mapping[HostId, float]


def common_start(paces: Mapping[HostId, Pace], now_s: float, answer_s: float, patience: float = 1.0) -> Start:
    """Return a start that every host hears of before it is there.

    Hearing takes the longest poll, a step (ranks look at the end of each), 1 s, and the time of an answer;
    `patience` stretches that, after a start that some host missed. start = the furthest step + twice that /
    the shortest step + 2: there is time left to take it back on all hosts where one has not heard of it.
    Hosts whose step differs from the median of all, by more than reading it at different moments explains,
    are strays: their numbers are not the others' iterations. They have no say in the choice.

    Raises:
        ValueError: there is no host.
    """
    if not paces:
        raise ValueError("no host has told its step")
    here = {host: pace.step_at(now_s) for host, pace in paces.items()}
    middle = statistics.median(here.values())
    step_s = min(pace.step_s for pace in paces.values())
    tolerance = _TOLERANCE_STEPS + (TOLERANCE_S + answer_s) / step_s
    # A pace that is too fast has run ahead by a share of the time since it was read.
    strays = {
        host: step - middle
        for host, step in here.items()
        if abs(step - middle) > tolerance + abs(step - paces[host].last.step) / 2
    }
    steady = {host: pace for host, pace in paces.items() if host not in strays} or dict(paces)
    longest_s = max(pace.poll_s for pace in steady.values()) + max(pace.step_s for pace in steady.values())
    hear_s = patience * (longest_s + _MORE_S + answer_s)
    margin = math.ceil(2 * hear_s / min(pace.step_s for pace in steady.values())) + _MORE_STEPS
    furthest = math.ceil(max(here[host] for host in steady))
    slowest_s = max((furthest + margin - here[host]) * steady[host].step_s for host in steady)
    return Start(furthest + margin, hear_s, slowest_s, strays)
