"""What a model knows of the job it wrote: all that the runner needs, and nothing of how it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster_run.findings import Finding


@dataclass(frozen=True)
class KnownFault:
    """One fault, and what it truly costs: the job made again without it, with the same draws.

    `accepted` are the kinds that name it right: more than one where the files cannot tell them apart.
    `cost_ms` is a step's saving with all other faults repaired, `marginal_ms` with all others left: two equal
    faults hide each other. `ranks` are a host's ranks, or the ends of links. `other_hosts` name it as well
    where nothing tells them from `hosts`: what leaves one of two racks comes to the other. Of what is of
    many, a finding need not name all ranks.
    """

    kind: str
    accepted: tuple[str, ...]
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    cost_ms: float
    marginal_ms: float
    other_hosts: tuple[tuple[str, ...], ...] = ()
    is_of_many: bool = False


@dataclass(frozen=True)
class KnownJob:
    """A job that lies in `folder` as profilers write it. `cost_ms` is of all faults together, a step.

    `saving_ms(finding)` is what a step truly gains if what a finding names were as its peers, with all faults
    left or all repaired, whichever is more: faults hide what else is slow.
    """

    folder: Path
    mode: str
    seed: int
    fault_class: str
    about: str
    n_ranks: int
    step_ms: float
    cost_ms: float
    faults: tuple[KnownFault, ...]
    saving_ms: Callable[[Finding], float]
