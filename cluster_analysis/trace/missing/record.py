"""A call that a rank's files lack: what is known of it by others, and how it is filled in."""

from __future__ import annotations

from msgspec import Struct

from cluster_analysis.numeric.arrays import IntArray


class Holed(Struct, frozen=True):
    """An operator that some ranks lack, the others' calls, and what they tell, in µs.

    `known` are the calls that others make in its place: those of its members, or of a message its replicas'.
    `group` is that of those who lack it. `ended_us` is when it was over, on the clock of all, NaN where
    nobody tells. `needed_us` is how long it takes who waits for nobody, and `usual_us` how long complete ones
    take, NaN if there are none. `waited` says whether all who are known waited for one who is not. A message
    has a place in a program: its number among the programs, the row of its group there, and its slot.
    """

    known: IntArray
    lacking: tuple[int, ...]
    group: int
    ended_us: float
    needed_us: float
    usual_us: float
    waited: bool
    place: tuple[int, int, int] | None = None


class MissingCall(Struct, frozen=True):
    """One call to fill in: like `source` (a call of another rank), on this rank's clock, in µs.

    `earliest_us` and `latest_us` are between which times it may have begun instead. `place` is that of a
    message in a program.
    """

    rank: int
    group: int
    source: int
    start_us: float
    end_us: float
    earliest_us: float
    latest_us: float
    place: tuple[int, int, int] | None = None
