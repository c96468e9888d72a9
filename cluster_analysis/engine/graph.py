"""Tasks of a Dask graph: one that fails gives a value, and the others go on."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cluster_analysis.engine.protocol import N_ATTEMPTS, Graph, Key, TaskEnd
from cluster_run.errors import in_one_line

R = TypeVar("R")


@dataclass(frozen=True)
class Tried(Generic[R]):
    """A function that is tried `N_ATTEMPTS` times, and gives an outcome.

    Arguments may be outcomes of other tasks, or lists of them: the function gets their values. Where one of
    them failed, so does this task, for the same reason.
    """

    function: Callable[..., R]

    def __call__(self, *arguments: Any) -> TaskEnd[R]:
        """Return the outcome; only interruptions are raised."""
        failure = next((one.failure for one in _outcomes(arguments) if one.failure), "")
        if failure:
            return TaskEnd(failure=failure)
        values = [_value(argument) for argument in arguments]
        for _ in range(N_ATTEMPTS):
            try:
                return TaskEnd(value=self.function(*values))
            except Exception as error:
                failure = one_line(error)
        return TaskEnd(failure=failure)


def task(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """Return a task for a graph. Arguments that are keys, or lists of keys, stand for what they name."""
    return (Tried(function), *arguments)


def renamed(graph: Graph, mark: str) -> Graph:
    """Return the graph with a mark in each key: a scheduler may hold values of others, and older ones."""

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(one) for one in node]
        if isinstance(node, tuple):
            if node and isinstance(node[0], str) and node in graph:
                return marked(node, mark)
            if node and callable(node[0]):
                return (node[0], *(walk(one) for one in node[1:]))
        return node

    return {marked(key, mark): walk(node) for key, node in graph.items()}


def marked(key: Key, mark: str) -> Key:
    """Return a key with a mark in its name, which Dask's dashboard leaves out."""
    return (f"{key[0]}-{mark}", *key[1:])


def one_line(error: BaseException) -> str:
    """Return what went wrong, and in which function, without a line break."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {in_one_line(error, 'no message')}{place}"


def _outcomes(arguments: Any) -> list[TaskEnd[Any]]:
    found = []
    for argument in arguments:
        found += argument if isinstance(argument, list) else [argument]
    return [one for one in found if isinstance(one, TaskEnd)]


def _value(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_value(one) for one in argument]
    return argument.value if isinstance(argument, TaskEnd) else argument
