"""What findings say, in sentences for somebody who was woken up by them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_analysis.judge.measures.metrics import Metric
from cluster_run.findings import Cause, Pattern
from cluster_run.ids import Rank, format_number_ranges

#: Ranks that are listed by number.
_N_LISTED = 8
_PATTERN_WORDS: dict[Pattern, str] = {
    "persistent": "in every step",
    "intermittent": "in some steps",
    "transient": "in one step",
    "trend": "more and more from step to step",
}


def listed_ranks(ranks: Sequence[int]) -> str:
    """Ranks by number, the first few of many: rank 15; ranks 4, 5; ranks 0, 1, … and 24 more."""
    shown = ", ".join(map(str, ranks[:_N_LISTED]))
    more = f" and {len(ranks) - _N_LISTED} more" if len(ranks) > _N_LISTED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


def percent(share: float) -> str:
    """A share as people say it: 22 %, 4.5 %, 0.31 %."""
    value = abs(share) * 100
    digits = 0 if value >= 10 else 1 if value >= 1 else 2
    return f"{value:.{digits}f} %"


def milliseconds(time_us: float) -> str:
    """µs as milliseconds with three figures at most."""
    value = time_us / 1e3
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 2
    return f"{value:.{digits}f} ms"


def when(pattern: Pattern, n_events: int, n_steps: int) -> str:
    """In which steps."""
    if pattern == "persistent" and n_steps == 1:
        return "in the only step"
    if pattern == "persistent" and n_events < n_steps:
        return f"in {n_events} of {n_steps} steps"
    if pattern == "intermittent":
        return f"in {n_events} of {n_steps} steps"
    return _PATTERN_WORDS[pattern]


def rank_summary(
    metric: Metric, subject: str, peers: str, when_text: str, *, own_us: float, peers_us: float
) -> str:
    """One sentence on a slow rank."""
    if metric.is_log:
        slower = percent(own_us / peers_us - 1.0)
        return f"{subject} computes {slower} slower than its {peers} {when_text}."
    more = milliseconds(own_us - peers_us)
    if metric.name == "preparing":
        return f"{subject} starts its work {more} later than its {peers} {when_text}."
    return f"{subject} leaves its device idle {more} longer than its {peers} {when_text}."


def host_summary(
    metric: Metric, host: str, *, ranks: tuple[Rank, ...], own_us: float, peers_us: float, n_hosts: int
) -> str:
    """One sentence on a slow host."""
    who = f"{len(ranks)} ranks of host {host} ({format_number_ranges(ranks)})"
    others = f"ranks of the same stage on {n_hosts} other host{'s' if n_hosts > 1 else ''}"
    if metric.is_log:
        slower = percent(own_us / peers_us - 1.0)
        return f"All {who} compute {slower} slower than {others}."
    more = milliseconds(own_us - peers_us)
    if metric.name == "preparing":
        return f"The {who} start their steps {more} later than {others}."
    return f"The {who} leave their devices idle {more} longer a step than {others}."


def local_next_check(cause: Cause, subject: str) -> str:
    """What to look at next."""
    if cause == "compute":
        return f"Compare AI Core frequency, temperature and power limit of {subject} with its neighbours."
    if cause == "input":
        return f"Look at data loading and storage on {subject}: its steps begin late."
    if cause == "dispatch":
        return (
            f"Look at CPU load, core binding and garbage collection on {subject}: "
            "work reaches the device too slowly."
        )
    return f"Profile {subject} and one neighbour again over at least 5 steps."
