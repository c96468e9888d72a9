"""Times in names of captures: which of them began together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from cluster_analysis.discovery.found import Found
from cluster_run.ids import Rank

#: Processes of one job start within this time.
_START_MS = 60_000


def began_together(found: Sequence[Found]) -> list[str]:
    """Name each capture after the nearest beginning that the rank with most captures has.

    All have the same name where one has no time in its own.
    """
    by_rank: dict[Rank, list[Found]] = {}
    for one in found:
        if one.rank is not None:
            by_rank.setdefault(one.rank, []).append(one)
    if not all(one.stamp for one in found) or not by_rank:
        return [""] * len(found)
    anchors = _sessions(by_rank)
    return [
        str(min(anchors, key=lambda anchor: (abs(_ms(anchor) - _ms(one.stamp)), anchor))) for one in found
    ]


def _sessions(by_rank: Mapping[Rank, list[Found]]) -> list[int]:
    """Return when the sessions of the rank with most captures began.

    Two processes that began at about the same time are no two sessions: both say that they are this rank,
    as those of MindSpore do that were started without RANK_ID.
    """
    fullest = min(by_rank, key=lambda rank: (-len({one.stamp for one in by_rank[rank]}), rank))
    began: list[int] = []
    latest: Found | None = None
    for one in sorted(by_rank[fullest], key=lambda one: (one.stamp, one.ended_ns, str(one.directory))):
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
