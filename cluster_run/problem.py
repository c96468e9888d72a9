"""What could not be used, and why: a value, wherever it came up."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_run.ids import HostId, Rank


@dataclass(frozen=True)
class Problem:
    """Something that could not be used, and why. Empty strings and None mean "does not apply"."""

    reason: str
    file: str = ""
    rank: Rank | None = None
    host: HostId | None = None
    advice: str = ""
