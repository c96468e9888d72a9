"""A problem: data that could not be used, and why. A value, wherever it came up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cluster_run.facts import Fact
from cluster_run.ids import HostId, Rank


@dataclass(frozen=True)
class Problem:
    """Something that could not be used. An empty file and None mean "does not apply".

    `why` is the reason, `also` are further ones of the same file. `advice` names what to do about it; it may
    speak of the values of `why`.
    """

    why: Fact
    file: str = ""
    rank: Rank | None = None
    host: HostId | None = None
    advice: str | None = None
    also: tuple[Fact, ...] = ()

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.why.kind


def one_a_file(found: tuple[Problem, ...], read: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return all problems; if discovery and reading both name a rank's file, that is one problem.

    The collector's advice is better than the reader's, which sees only the collected files.
    """
    of_file: dict[tuple[Rank | None, str], Problem] = {
        (one.rank, one.file): one for one in found if one.rank is not None and one.file
    }
    problems = []
    for one in read:
        other = of_file.pop((one.rank, one.file), None)
        problems.append(
            replace(one, also=(*one.also, other.why, *other.also), advice=other.advice or one.advice)
            if other
            else one
        )
    known = {(one.rank, one.file) for one in read}
    return (*(one for one in found if (one.rank, one.file) not in known), *problems)
