"""The engine's vocabulary, and the choice of who does the work.

An engine carries pure functions to where they run and their values back; it never thinks. Three are
there: `engine_local` (this process, threads, or local processes), `engine_dask` (a cluster somebody
runs) and `engine_slurm` (workers asked of Slurm). They give the same values in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from cluster_run.errors import ClusterError

T = TypeVar("T")
R = TypeVar("R")

#: How often a task is tried before it is given up and becomes a problem with a name.
N_ATTEMPTS = 3


class EngineError(ClusterError):
    """The scheduler cannot be reached, or was lost on the way."""


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """What became of one task: a value, or why it was given up after `N_ATTEMPTS`."""

    value: R | None = None
    failure: str = ""


class Part(Protocol):
    """A piece of a kept value that a later task takes as an argument; only the engine knows where it lies."""


class Kept(Protocol):
    """A value that stays where it was made."""

    def part(self, key: int) -> Part:
        """Return the piece with this key."""
        ...


@dataclass(frozen=True)
class KeptOutcome(Generic[R]):
    """The small half of a task's value, and the large half, which stays where it is."""

    value: R | None = None
    kept: Kept | None = None
    failure: str = ""


class Engine(Protocol):
    """Runs pure functions. Arguments and values must be picklable; functions live in a module."""

    #: For the log: how the work is done.
    name: str
    n_workers: int
    #: Whether the kept values should go to files of the scratch directory.
    wants_files: bool
    #: Whether tasks may write files where we do.
    shares_files: bool

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> Iterator[Outcome[R]]:
        """Call `function(*call)` for each call; give the outcomes in the order of the calls."""
        ...

    def run_keeping(
        self, function: Callable[..., tuple[R, Any]], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[KeptOutcome[R]]:
        """Like `run` for functions that return `(small, large)`: `large.part(key)` gives its pieces."""
        ...

    def close(self) -> None:
        """Stop what was started; connections to a cluster that somebody else runs are only closed."""
        ...
