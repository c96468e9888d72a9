"""The engine's vocabulary, and the choice of who does the work.

An engine carries pure functions to where they run and their values back; it never thinks. Three are
there: `engine_local` (this process, threads, or local processes), `engine_dask` (a cluster somebody
runs) and `engine_slurm` (workers asked of Slurm). They give the same values in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cluster_analysis.options import ADDRESS_PREFIXES, NAMED_SCHEDULERS, AnalyseOptions
from cluster_run.errors import ClusterError, UsageError

T = TypeVar("T")
R = TypeVar("R")

#: How often a task is tried before it is given up and becomes a problem with a name.
N_ATTEMPTS = 3
#: With less than this to read, starting processes costs more than they save.
SMALL_RUN_BYTES = 48 * 1024 * 1024


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


def open_engine(options: AnalyseOptions, size_bytes: int, scratch: Path) -> Engine:
    """Return the engine that the options ask for; `auto` chooses by the bytes to read.

    Raises:
        UsageError: no scheduler of that name is known.
        EngineError: a cluster cannot be reached.
    """
    # Imported late: a run of two ranks must not pay for a cluster.
    scheduler = options.scheduler
    if scheduler.startswith(ADDRESS_PREFIXES):
        from cluster_analysis.engine_dask import connect  # noqa: PLC0415

        return connect(scheduler, options.tls)
    if scheduler == "slurm":
        from cluster_analysis.engine_slurm import start  # noqa: PLC0415

        return start(options.n_workers, scratch)
    from cluster_analysis import engine_local  # noqa: PLC0415

    n_workers = options.n_workers or usable_cpus()
    if scheduler == "threads":
        return engine_local.ThreadEngine(n_workers)
    if scheduler == "processes":
        return engine_local.ProcessEngine(n_workers, scratch)
    if scheduler == "auto":
        if size_bytes < SMALL_RUN_BYTES or n_workers < 2:
            return engine_local.SerialEngine()
        return engine_local.ProcessEngine(n_workers, scratch)
    raise UsageError(
        f"unknown scheduler {scheduler!r}",
        f"one of {', '.join(NAMED_SCHEDULERS)}, or an address like tcp://host:8786",
    )


def usable_cpus() -> int:
    """Return how many processors this process may use: a container's or Slurm's share, not the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
