"""A call that a rank's files lack, made up from those of other ranks: what `imputation` fills in."""

from __future__ import annotations

from msgspec import Struct


class MissingCall(Struct, frozen=True):
    """One call to fill in: like `source` (a call of another rank), on this rank's clock, in µs.

    `earliest_us` and `latest_us` are between which times it may have begun instead. A message has a place in
    a program: its number among the programs, the row of its group there, and its slot.
    """

    rank: int
    group: int
    source: int
    start_us: float
    end_us: float
    earliest_us: float
    latest_us: float
    place: tuple[int, int, int] | None = None
