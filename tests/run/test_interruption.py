"""A signal ends a command wherever it meets it."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from cluster_run.errors import InterruptedRunError
from cluster_run.interruption import interruptible


class _Signals:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_meets_code_whose_errors_python_ignores_comes_again() -> None:
    hook, alarm = sys.unraisablehook, signal.getsignal(signal.SIGALRM)

    def dropped() -> None:
        one = _Signals()
        del one
        time.sleep(10)  # the timer's signal ends it

    with (
        pytest.raises(InterruptedRunError, match="interrupted by SIGTERM; it is kept"),
        interruptible("it is kept"),
    ):
        dropped()

    assert sys.unraisablehook is hook
    assert signal.getsignal(signal.SIGALRM) is alarm


def test_a_signal_that_would_come_again_when_all_is_done_kills_nobody() -> None:
    def dropped() -> None:
        one = _Signals()
        del one

    with interruptible():
        dropped()

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
