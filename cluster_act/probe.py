"""A paired probe: the same work on a suspect and a control by turns, judged by the ratio of their times."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, stdev

from cluster_act.values import RefusedError
from cluster_act.ways.process import run, words
from cluster_run.errors import UsageError

FEWEST_PAIRS, MOST_PAIRS = 5, 60
#: Clearly slower: this much at least, whatever chance does.
SLOW_SHARE = 0.02
#: Quantiles of Student's distribution at 99.5 % for n - 1 degrees of freedom, n = 5, 10, 20 pairs and more.
_QUANTILES = ((20, 2.86), (10, 3.25), (0, 4.60))
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_PLACE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):(\d{1,3})")


@dataclass(frozen=True)
class Probed:
    """The suspect's time over the control's, less one; `low` and `high` hold it in 99 %."""

    share: float
    low: float
    high: float
    n_pairs: int

    @property
    def is_slow(self) -> bool:
        """Whether the suspect is clearly slower."""
        return self.low > 0 and self.share >= SLOW_SHARE

    @property
    def is_settled(self) -> bool:
        """Whether the answer is clear, either way."""
        return self.is_slow or self.high < SLOW_SHARE


def place(text: str) -> tuple[str, int]:
    """Return node and device of `node017:5`.

    Raises:
        UsageError: it is no such place.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no device", "write it like node017:5")
    return found[1], int(found[2])


def timed_by(ssh: str, command: str) -> Callable[[str], float]:
    """Return what runs the site's command for a device (`{device}`) and gives the number it prints last."""

    reach = words(ssh, "--ssh")

    def timed(where: str) -> float:
        node, device = place(where)
        text = run([*reach, node, command.replace("{device}", str(device))], changes=False)
        numbers = _NUMBER.findall(text)
        if not numbers or float(numbers[-1]) <= 0:
            raise RefusedError(
                f"{where}: the probe printed no time", "its last number is taken, more is slower"
            )
        return float(numbers[-1])

    return timed


def probed(suspect: str, control: str, timed: Callable[[str], float], seconds: float) -> Probed:
    """Run the work on both by turns for that time, the order changing, and compare.

    Raises:
        RefusedError: it does not run on one of them, or not often enough.
    """
    for one in (suspect, control):
        timed(one)  # the first run warms up, and counts for nothing
    end_s = time.monotonic() + seconds
    logs: list[float] = []
    while len(logs) < FEWEST_PAIRS or (time.monotonic() < end_s and len(logs) < MOST_PAIRS):
        pair = (suspect, control) if len(logs) % 2 == 0 else (control, suspect)
        taken = {one: timed(one) for one in pair}
        logs.append(math.log(taken[suspect] / taken[control]))
    return compared(logs)


def compared(logs: list[float]) -> Probed:
    """Return what log ratios of pairs say."""
    n = len(logs)
    quantile = next(one for least, one in _QUANTILES if n >= least)
    middle, error = mean(logs), quantile * stdev(logs) / math.sqrt(n)
    return Probed(math.expm1(middle), math.expm1(middle - error), math.expm1(middle + error), n)
