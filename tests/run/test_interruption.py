"""A signal ends a command wherever it meets it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_run.command_line import interruptible
from cluster_run.errors import InterruptedRunError


def test_a_signal_is_no_failure_of_what_it_meets() -> None:
    reached = []

    def met() -> None:
        with contextlib.suppress(Exception):
            signal.raise_signal(signal.SIGTERM)
        reached.append("what comes next")

    with pytest.raises(InterruptedRunError, match="interrupted by SIGTERM"), interruptible():
        met()
    assert not reached


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


@pytest.mark.slow
def test_writers_of_a_large_simulation_end_with_it(tmp_path: Path) -> None:
    sizes = ["--tp", "4", "--pp", "4", "--dp", "16"]
    command = [sys.executable, "-m", "cluster_simulate", str(tmp_path / "run"), *sizes]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        while not list(tmp_path.rglob("*_ascend_pt")):
            time.sleep(0.01)
        started.send_signal(signal.SIGTERM)
        _, said = started.communicate(timeout=120)
    assert (started.returncode, said) == (130, "cluster-simulate: interrupted by SIGTERM\n")
