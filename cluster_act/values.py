"""The values of cluster-act: cases, plans, and errors of actions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

from cluster_run.errors import ClusterError
from cluster_words.phrase import Phrase


@dataclass(frozen=True)
class Case:
    """A device or host that costs time, on a node. `device` is its number on the node, None for the host.

    `devices` are the numbers that the driver has for it, or for all devices of the host that are known;
    `has_namesake`: another host of the fleet is called like its node.

    `evidence` and `cost` are sentences; what is written down is in English. `is_confirmed`: by
    several runs, or by a probe; else by one run.
    """

    unit: str
    name: str
    node: str
    device: int | None
    evidence: Phrase
    cost: Phrase
    is_confirmed: bool
    devices: tuple[int, ...] = ()
    has_namesake: bool = False

    @property
    def token(self) -> str:
        """What marks an action as ours and for this unit, the same each time."""
        return f"cact-{hashlib.sha256(f'{self.node}/{self.unit}'.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class NodeNames:
    """What others call the host that calls itself so: `{host}` in the text is its own name, `{short}` that
    up to the first dot.
    """

    text: str

    def of(self, host: str) -> str:
        """Return the name of a host."""
        return self.text.replace("{short}", host.partition(".")[0]).replace("{host}", host)

    def in_case(self, case: Case) -> Case:
        """Return a case for those who call its node so."""
        return replace(case, node=self.of(case.node))


@dataclass(frozen=True)
class Planned:
    """A case that something is to be done about; `why_not` where nothing is."""

    case: Case
    why_not: Phrase | None


class RefusedError(ClusterError):
    """An action cannot be done, or must not be done now; nothing was changed."""


class UncertainError(ClusterError):
    """An action was begun and did not say how it ended: it may or may not have been done."""


class Way(Protocol):
    """One way to act. Each may be done twice, and changes nothing that is not ours."""

    def check(self) -> None:
        """Raise a RefusedError where this way cannot be gone at all here."""

    def described(self, case: Case) -> tuple[str, str]:
        """Return what would be done, and how it is undone, as a person would type it."""

    def apply(self, case: Case) -> str:
        """Do it; return what was done. Raises RefusedError, UncertainError."""

    def undo(self, case: Case) -> str:
        """Undo it, if it is ours; return what was done. Raises RefusedError, UncertainError."""


def reason_of(case: Case) -> str:
    """Return the reason that others read, on one line; its beginning is always the same."""
    return f"{_mark(case)} {' '.join(case.evidence.en.split())}"


def is_ours(reason: str, case: Case) -> bool:
    """Whether a reason that others read is ours for this case."""
    return reason.startswith(_mark(case))


def _mark(case: Case) -> str:
    return f"cluster-act:{case.token}"
