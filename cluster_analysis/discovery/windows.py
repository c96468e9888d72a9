"""Several captures of one rank: each is a window of its own, and one of them is analysed.

Captures of different ranks belong to one window when their directories say so (`rank0_start2_stop5`),
else when they began at about the same time, else when they lie beside each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone

from msgspec import Struct

from cluster_analysis.discovery.found import Found, public_name
from cluster_run.errors import InputError
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

#: Processes of one job start within this time.
_START_MS = 60_000

Windows = dict[str, dict[Rank, list[Found]]]


class Choice(Struct, frozen=True):
    """One window: each rank once. `problems` name what had to be left out, `notes` the other windows."""

    name: str
    captures: Mapping[Rank, Found]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Fact, ...] = ()


def choose_window(found: Iterable[Found], wanted: str | None, runs: Sequence[str] = ()) -> Choice:
    """Choose the wanted window, or the newest of those that have most ranks.

    `runs` are the names of the runs from which this one was chosen, where there were several.

    Raises:
        InputError: no window, or more than one, is called `wanted`.
    """
    windows = split_into_windows(list(found))
    order = sorted(windows, key=lambda name: (_began(windows[name]), name))
    name = _named(order, wanted, runs) if wanted is not None else _newest_complete(windows, order)
    problems = []
    captures = {}
    for rank, candidates in sorted(windows[name].items()):
        newest = max(candidates, key=_age)
        captures[rank] = newest
        if len(candidates) > 1:
            left_out = sorted(public_name(one.directory) for one in candidates if one is not newest)
            problems.append(
                Problem(
                    fact(
                        "several_captures_of_rank",
                        n_captures=len(candidates),
                        used=public_name(newest.directory),
                        others=tuple(left_out),
                    ),
                    file=public_name(newest.directory),
                    rank=rank,
                    host=newest.host,
                    advice="remove_other_jobs",
                )
            )
    return Choice(name, captures, tuple(problems), _notes(windows, order, name))


def split_into_windows(found: list[Found]) -> Windows:
    """Return `{window: {rank: captures}}`; one window, named after its session, where no rank repeats."""
    by_rank: dict[Rank, list[Found]] = {}
    for one in found:
        if one.rank is not None:
            by_rank.setdefault(one.rank, []).append(one)
    sessions = {one.window for one in found}
    if all(len(captures) == 1 for captures in by_rank.values()) and len(sessions) == 1:
        name_of = {id(one): one.window for one in found}
    elif any(sessions):
        name_of = {id(one): one.window or "unnamed" for one in found}
    elif all(one.stamp for one in found) and any(_differ(captures) for captures in by_rank.values()):
        name_of = _by_time(by_rank)
    elif any(len(captures) > 1 for captures in by_rank.values()):
        name_of = {id(one): one.beside for one in found}
    else:
        name_of = {id(one): "" for one in found}
    windows: Windows = {}
    for rank, captures in by_rank.items():
        for one in captures:
            windows.setdefault(name_of[id(one)], {}).setdefault(rank, []).append(one)
    return windows


def _differ(captures: list[Found]) -> bool:
    return len({one.stamp for one in captures}) > 1


def _by_time(by_rank: Mapping[Rank, list[Found]]) -> dict[int, str]:
    """Give each capture the name of the nearest beginning that the rank with most captures has."""
    fullest = min(by_rank, key=lambda rank: (-len({one.stamp for one in by_rank[rank]}), rank))
    anchors = _sessions(by_rank[fullest])
    return {
        id(one): str(min(anchors, key=lambda anchor: (abs(_ms(anchor) - _ms(one.stamp)), anchor)))
        for captures in by_rank.values()
        for one in captures
    }


def _sessions(captures: list[Found]) -> list[int]:
    """Return when the sessions of one rank began.

    Two processes that began at about the same time are no two sessions: both say that they are this rank,
    as those of MindSpore do that were started without RANK_ID.
    """
    began: list[int] = []
    latest: Found | None = None
    for one in sorted(captures, key=_age):
        is_same = (
            latest is not None
            and one.worker != latest.worker
            and _ms(one.stamp) - _ms(latest.stamp) < _START_MS
        )
        if not is_same:
            began.append(one.stamp)
        latest = one
    return sorted(set(began))


def _ms(stamp: int) -> int:
    """Return a stamp of 17 digits (2025 01 01 12 34 56 789) as ms since 1970; any other as it is."""
    try:
        second = datetime.strptime(f"{stamp // 1000:014d}", "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return stamp
    return int(second.timestamp()) * 1000 + stamp % 1000


def _age(one: Found) -> tuple[int, int, str]:
    return one.stamp, one.ended_ns, str(one.directory)


def _began(window: Mapping[Rank, list[Found]]) -> tuple[int, int]:
    newest = [max(captures, key=_age) for captures in window.values()]
    return max(one.stamp for one in newest), max(one.ended_ns for one in newest)


def _named(order: list[str], wanted: str, runs: Sequence[str]) -> str:
    matches = [name for name in order if name == wanted] or [name for name in order if wanted in name]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join([*runs, *filter(None, order)]) or "one without a name"
    raise InputError(f"no single capture is called {wanted!r}", f"there are: {known}")


def _newest_complete(windows: Windows, order: list[str]) -> str:
    most = max(len(windows[name]) for name in order)
    return next(name for name in reversed(order) if len(windows[name]) == most)


def _notes(windows: Windows, order: list[str], chosen: str) -> tuple[Fact, ...]:
    if len(order) == 1:
        return ()
    names = tuple(name or "." for name in order)
    notes = [fact("several_captures", captures=names, chosen=chosen or ".")]
    everyone = {rank for name in order for rank in windows[name]}
    for name in order:
        missing = everyone - windows[name].keys()
        if missing:
            notes.append(fact("capture_lacks_ranks", capture=name or ".", ranks=tuple(sorted(missing))))
    return tuple(notes)
