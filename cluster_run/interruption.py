"""Signals that end a command: Ctrl-C, SIGTERM of a scheduler, SIGHUP of a closed terminal."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cluster_run.errors import InterruptedRunError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: After how many seconds a signal comes again that met code whose errors Python ignores.
_AGAIN_S = 0.01


class _Signalled(KeyboardInterrupt):
    """What a signal raises: neither our code nor a library's takes it for a failure of what it met."""


def is_ignored(number: signal.Signals) -> bool:
    """Whether our caller wants us to live through this signal, as nohup does with SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


@contextmanager
def interruptible(what_is_left: str = "") -> Iterator[None]:
    """Have signals end what is within, so that what was begun is cleaned up.

    Args:
        what_is_left: what the message says about the state that the interruption leaves behind.

    Raises:
        InterruptedRunError: a signal came.
    """
    came: list[signal.Signals] = []

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGALRM:
            came.append(signal.Signals(number))
        raise _Signalled

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        # Python ignores what is raised in callbacks of weak references, and imports are full of them.
        if isinstance(unraisable.exc_value, _Signalled):
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook_before(unraisable)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what signals do
        return
    before = {number: signal.getsignal(number) for number in SIGNALS if not is_ignored(number)}
    hook_before, sys.unraisablehook = sys.unraisablehook, ignored
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    except _Signalled:
        text = f"interrupted by {came[-1].name}"
        raise InterruptedRunError(f"{text}; {what_is_left}" if what_is_left else text) from None
    finally:
        sys.unraisablehook = hook_before
        if signal.SIGALRM in before:  # one that comes after this would kill the process
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
