"""Outcome of a capture: values that the command prints and the watch keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster_collect.faults import HostError
from cluster_collect.inventory.nodesets import fold
from cluster_run.errors import ClusterError
from cluster_run.ids import HostId

#: Why a host is not in a capture, for programs; and what each means.
LOST: Mapping[str, str] = {
    "unreachable": "no connection, or its program ended",
    "refused": "nothing was sent: whose job it would be is in doubt",
    "held": "another capture is at work there",
    "other": "somebody else asked for a capture that has not begun",
    "busy": "a capture runs there, or the daemon dropped the text",
    "late": "its job was past the start before it heard of it",
    "silent": "it did not confirm the start",
    "stray": "its step is far from the others': the same number is another iteration there",
    "no_step": "its step could not be read",
    "unfinished": "the capture did not begin, or did not end, in time",
    "unparsed": "the capture is there, and could not be parsed",
    "other_steps": "its files hold other steps than those of the others",
    "other_iterations": "its collectives are not those of the others, though steps and numbers agree",
}


#: Each of thousands of hosts may have a reason of its own, which names its ranks or files.
MOST_TOLD = 5


@dataclass(frozen=True)
class Lost:
    """A host that is not in a capture: a key of `LOST`, the reason, and what to do."""

    word: str
    reason: str
    advice: str = ""

    @classmethod
    def by(cls, word: str, error: HostError) -> Lost:
        """Return it for an error of the host."""
        return cls(word, error.message, error.advice)


@dataclass(frozen=True)
class Captured:
    """A capture of the same steps on `hosts`, and who is not in it. The job ran captured for `busy_s`."""

    id: str
    steps: range
    hosts: tuple[HostId, ...]
    lost: Mapping[HostId, Lost]
    directories: Mapping[HostId, str]
    #: The captures of each host, by their paths below its directory.
    captures: Mapping[HostId, frozenset[str]]
    n_bytes: int
    busy_s: float
    step_s: float
    notes: tuple[str, ...]


def reasons(lost: Mapping[HostId, Lost], names: Mapping[HostId, str]) -> str:
    """Return why hosts are lost: each reason once with its hosts, and of many reasons the first ones."""
    hosts: dict[str, list[str]] = {}
    for host, why in lost.items():
        hosts.setdefault(why.reason, []).append(names[host])
    told = [f"{fold(of_one)}: {reason}" for reason, of_one in hosts.items()]
    n_more = sum(map(len, list(hosts.values())[MOST_TOLD:]))
    return "; ".join([*told[:MOST_TOLD], f"and {n_more} more hosts"] if n_more else told)


class NotCapturedError(ClusterError):
    """Too few hosts could take part: nothing was captured, or what was sent was taken back."""


def not_captured(
    lost: Mapping[HostId, Lost], names: Mapping[HostId, str], quorum: int | None
) -> NotCapturedError:
    """Return the error that says which hosts are lost, and why."""
    listed = reasons(lost, names) or f"the inventory has {len(names)}"
    advices = list(dict.fromkeys(why.advice for why in lost.values() if why.advice))[:MOST_TOLD]
    enough = "all hosts are required" if quorum is None else f"{quorum} hosts are required"
    if quorum is None and len(lost) < len(names):
        advices.insert(0, "--require quorum N goes on without some")
    return NotCapturedError(f"nothing was captured, {enough}: {listed}", "; ".join(advices))
