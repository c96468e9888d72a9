"""Asks each worker before work starts: is it the same program, on the same Python, and does it see the run?

One that differs is left out and named with what to do. Without this its ranks would be missing in the
findings, and the training hosts would be blamed.
"""

from __future__ import annotations

import asyncio
import platform
import pydoc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from distributed import Client

from cluster_analysis.engine.clusters.probe import look, probe_of
from cluster_analysis.engine.protocol import EngineError, Place
from cluster_run.version import VERSION

#: A worker that does not answer within this time is left out.
_ANSWER_DEADLINE_S = 30.0
#: Where any version of the program holds its version.
_VERSION_PATH = "cluster_run.version.VERSION"


@dataclass(frozen=True)
class Checked:
    """The workers that can do the work, all of them if `left_out` is empty, and why others cannot."""

    workers: tuple[str, ...]
    left_out: tuple[str, ...]
    writes_output: bool


def check_workers(
    client: Client, place: Place, address: str, workers: Iterable[str] | None = None
) -> Checked:
    """Ask all workers, or those named, what they see of `place`.

    Raises:
        EngineError: none of them can do the work; the message says why.
    """
    asked = sorted(client.nthreads() if workers is None else workers)
    reasons: dict[str, str] = {}
    good = asked
    answers: dict[str, Any] = {}
    # The same program first: one that differs may understand no other question.
    with probe_of(place.files, place.output) as probe:
        for function, arguments, trouble_of in (
            (platform.python_version, (), _python_trouble),
            (pydoc.locate, (_VERSION_PATH,), _version_trouble),
            (look, (probe,), _sight_trouble),
        ):
            answers = _asked(client, function, arguments, good)
            reasons |= {one: trouble for one in good if (trouble := trouble_of(answers.get(one)))}
            good = [one for one in good if one not in reasons]
    left_out = _grouped(reasons, len(asked))
    if not good:
        raise EngineError(
            f"no worker of the Dask cluster at {address} can do the work: {'; '.join(left_out)}",
            "or leave --scheduler out to work on this machine",
        )
    return Checked(tuple(good), left_out, all(answers[one].writes_output for one in good))


def _asked(
    client: Client, function: Callable[..., Any], arguments: tuple[Any, ...], workers: list[str]
) -> dict[str, Any]:
    """Return each worker's answer, or its exception; workers that did not answer are left out."""
    if not workers:
        return {}
    try:
        # `Client.run` itself waits for ever.
        found: dict[str, Any] = client.sync(
            client._run,
            function,
            *arguments,
            workers=workers,
            on_error="return",
            callback_timeout=_ANSWER_DEADLINE_S,
        )
    except asyncio.TimeoutError:
        if len(workers) == 1:
            return {}
        # A worker that hangs holds up the answers of all: asked one by one, it shows.
        alone = [_asked(client, function, arguments, [one]) for one in workers]
        return {name: value for answers in alone for name, value in answers.items()}
    return found


def _python_trouble(answer: Any) -> str:
    if not isinstance(answer, str):
        return _no_answer(answer)
    here = platform.python_version()
    if answer.split(".")[:2] == here.split(".")[:2]:
        return ""
    return f"runs Python {answer}, and here is {here}: start it with the same Python"


def _version_trouble(answer: Any) -> str:
    if answer == VERSION:
        return ""
    if answer is None:
        return "cluster-profiler is not installed there: install it, or start the worker where it is"
    if not isinstance(answer, str):
        return _no_answer(answer)
    return f"has cluster-profiler {answer}, and here is {VERSION}: install the same version"


def _sight_trouble(answer: Any) -> str:
    trouble = getattr(answer, "trouble", None)
    if not isinstance(trouble, str):
        return _no_answer(answer)
    return f"{trouble}: workers must see the run under the same path as here" if trouble else ""


def _no_answer(answer: Any) -> str:
    if answer is None:
        return f"did not answer within {_ANSWER_DEADLINE_S:.0f} s: see its log, or stop it"
    return f"cannot answer: {type(answer).__name__}: {' '.join(str(answer).split())}"


def _grouped(reasons: dict[str, str], n_asked: int) -> tuple[str, ...]:
    """Return one line a reason, with the workers it holds for."""
    return tuple(
        f"{len(own)} of {n_asked} workers ({', '.join(own)}): {reason}"
        for reason in dict.fromkeys(reasons.values())
        if (own := [worker for worker, its in reasons.items() if its == reason])
    )
