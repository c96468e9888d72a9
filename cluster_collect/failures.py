"""Why a host is not complete: one word for programs, a reason and an advice for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_WHAT_TO_CHECK = (
    "check profiler_root, then --what, --exclude, --since and --capture; of r1.x device_regex and output_dir"
)
_MOST_NAMES = 6


@dataclass(frozen=True)
class Failure:
    """Why a host is not complete. `word` is for programs, which rely on it: docs/collecting.md has them all.

    It is empty when the host is complete.
    """

    word: str = ""
    reason: str = ""
    advice: str = ""


def nothing_found(profiler_root: str, capture: str, names: Sequence[str]) -> Failure:
    """Return the failure of a host without profiler data.

    `capture` is the one that the root lies inside of, empty where there is none; `names` are what is there
    instead.
    """
    reason, advice = f"no profiler data below {profiler_root}", _WHAT_TO_CHECK
    if capture:
        reason += f": that is the inside of the capture {capture.rpartition('/')[2]}"
        advice = f"use its parent as profiler_root: {capture.rpartition('/')[0] or '/'}"
    elif names:
        reason += (
            f"; there is {', '.join(names[:_MOST_NAMES])}{' and more' if len(names) > _MOST_NAMES else ''}"
        )
    return Failure("no-data", reason, advice)


def left_out(n_left_out: int, source: str, reason: str) -> Failure:
    """Return the failure of a host with profiler data that was not taken; `source` is the first of it."""
    others = f" ({n_left_out - 1} more)" if n_left_out > 1 else ""
    advice = "see manifest.json for all"
    if "symbolic link" in reason:
        advice = "name the directories that links may lead to: --set follow_links=/data2,/data3"
    return Failure("left-out", f"{source}: {reason}{others}", advice)


def listing_failure(problem: str, *, is_denied: bool) -> Failure:
    """Return the failure of a host that could not list everything, or may not; none without a problem."""
    if not problem:
        return Failure()
    advice = "check the permissions below the profiler root"
    if is_denied:
        advice = "let the login user read it, or set become: sudo for this host"
    return Failure("listing", problem, advice)
