"""Which ranks to look at first: those that findings name, and peers to compare them with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_run.errors import InputError, read_as
from cluster_run.files import json_of

#: A handful: what a person opens. The costliest findings come first.
MAX_SUSPECTS = 8
#: Of one finding, which may name all ranks of a host: as many of its own, and of its peers.
_N_OF_FINDING = 2


@dataclass(frozen=True)
class Suspects:
    """Ranks in ascending order: `named` by findings, and their `peers`."""

    named: tuple[int, ...]
    peers: tuple[int, ...]

    @property
    def ranks(self) -> frozenset[int]:
        """All of them."""
        return frozenset((*self.named, *self.peers))


def read_suspects(path: Path) -> Suspects:
    """Return the suspects of a findings.json: of its warnings and worse, the costliest first.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    with read_as(f"{path}: not readable findings", "analyse the run again"):
        if not path.exists():
            none = f"{path}: there are no findings yet"
            raise InputError(none, "cluster-analyse makes them of the run directory")
        findings = json_of(path.read_bytes())["findings"]
        alarms = [_of_finding(one) for one in findings if one["severity"] != "info"]
    everyone = {rank for named, _ in alarms for rank in named}
    named: list[int] = []
    peers: list[int] = []
    for own, others in alarms:
        new = [rank for rank in own[:_N_OF_FINDING] if rank not in named]
        free = [rank for rank in others if rank not in everyone]
        near = [rank for rank in free[:_N_OF_FINDING] if rank not in peers]
        if len(named) + len(peers) + len(new) + len(near) > MAX_SUSPECTS:
            break
        named += new
        peers += near
    return Suspects(tuple(sorted(named)), tuple(sorted(peers)))


def _of_finding(finding: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the ranks that a finding names, or both ends of its links, and those of its peers it lists."""
    ends = [end for link in finding.get("links", ()) for end in (link["src"], link["dst"])]
    own = [int(rank) for rank in finding["ranks"] or ends]
    return list(dict.fromkeys(own)), [int(rank) for rank in finding.get("peers", ())]
