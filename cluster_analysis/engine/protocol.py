"""What an engine is, and what it gives back: the protocol of all ways to have a graph worked out.

The work of an analysis is a Dask graph: `graph` says how its tasks are written down. An engine has the
graph worked out and brings the values back; it never thinks. `local` works on this machine, `clusters` on
Dask clusters. All give the same values in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from cluster_run.errors import ClusterError

R = TypeVar("R")

#: Name of a task or a value in a graph: what it is, and its numbers.
Key = tuple[str | int, ...]
#: A Dask graph: a value, or a task as `graph.task` writes it, by its key.
Graph = dict[Key, Any]
#: Called with the number of values that are done.
OnProgress = Callable[[int], None]

#: How often a task is tried before it is given up and becomes a problem with a name.
N_ATTEMPTS = 3


class EngineError(ClusterError):
    """The scheduler cannot be reached, or was lost on the way."""


@dataclass(frozen=True)
class TaskEnd(Generic[R]):
    """Result of one task: a value, or why it was given up after `N_ATTEMPTS`."""

    value: R | None = None
    failure: str = ""


class Kept(Protocol):
    """A value that stays where it was made."""

    def piece(self, key: int) -> Any:
        """Return the piece with this key, as an entry of a graph: a value, or a task that cuts it out."""
        ...


@dataclass(frozen=True)
class Place:
    """Paths that workers must see: files of the run, one a host, and the output."""

    files: tuple[str, ...]
    output: Path


def ignored(_n_done: int) -> None:
    """Ignore progress."""


class Engine:
    """Works graphs out. Values must be picklable; functions live in a module."""

    #: For the log: how the work is done.
    name: str
    n_workers: int
    #: Whether the kept values should go to files of the scratch directory.
    wants_files = False
    #: Whether tasks see our scratch directory.
    shares_scratch = True
    #: Whether tasks may write into our output folder.
    writes_output = True
    #: Remarks for the user before the work begins: workers left out, address of the dashboard.
    remarks: tuple[str, ...] = ()

    def run(self, graph: Graph, keys: Sequence[Key], on_progress: OnProgress = ignored) -> list[TaskEnd[Any]]:
        """Compute `keys`; return their outcomes in the order of the keys.

        Raises:
            EngineError: the scheduler, or what its workers share, was lost.
        """
        raise NotImplementedError

    def run_keeping(
        self, graph: Graph, keys: Sequence[Key], on_progress: OnProgress = ignored
    ) -> list[TaskEnd[tuple[Any, Kept]]]:
        """Like `run` for tasks that return `(small, large)`: the large halves stay where they were made.

        On this machine they are references to files, or tables.
        """
        return self.run(graph, keys, on_progress)

    def rest(self) -> None:
        """Stop idle workers if they start quickly: no work comes for a while."""

    def close(self) -> None:
        """Stop what was started; connections to a cluster that somebody else runs are only closed."""
