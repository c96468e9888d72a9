"""What could not be used, and why: a value, wherever it came up."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_run.facts import AdviceKind, Fact
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
    advice: AdviceKind | None = None
    also: tuple[Fact, ...] = ()

    @property
    def kind(self) -> str:
        """What kind of problem it is."""
        return self.why.kind
