"""A signal ends a command wherever it meets it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_run.command_line import interruptible
from cluster_run.errors import InterruptedRunError
from tests.analysis.runs import write_small_run
from tests.commands import ended


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


#: A command whose processes all begin late, and which says on stderr that two of them have been forked.
LATE = """
import os, sys, time
from importlib import import_module
os.cpu_count = lambda: 2
forked = []
os.register_at_fork(
    before=lambda: forked.append(1),
    after_in_parent=lambda: len(forked) == 2 and print("forked", file=sys.stderr),
    after_in_child=lambda: time.sleep(0.5),
)
import_module(sys.argv.pop(1)).run()
"""
SIZES = ("--tp", "4", "--pp", "4", "--dp", "16")


@pytest.mark.slow
@pytest.mark.parametrize("program", ["cluster-simulate", "cluster-analyse"])
def test_processes_that_have_just_begun_end_with_their_command(program: str, tmp_path: Path) -> None:
    if program == "cluster-analyse":
        write_small_run(tmp_path)
        call = ["cluster_analysis.__main__", str(tmp_path), "--scheduler", "processes", "--workers", "2"]
    else:
        call = ["cluster_simulate.__main__", str(tmp_path / "run"), *SIZES]
    with subprocess.Popen(
        [sys.executable, "-c", LATE, *call], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        assert started.stderr
        assert "forked\n" in started.stderr
        os.killpg(started.pid, signal.SIGTERM)
        _, said = ended(started)
    assert (started.returncode, said.count("\n")) == (130, 1), said
    assert said.startswith(f"{program}: interrupted by SIGTERM")


#: Meets a signal when a process has been forked, and nobody knows of it yet.
AT_ITS_START = """
import os, signal, sys
from cluster_run.command_line import interruptible
def met(_frame, event, called):
    if event == "c_return" and called.__name__ == "fork_exec":
        os.kill(os.getpid(), signal.SIGTERM)
with interruptible():
    {imported}
    sys.setprofile(met)
    {started}
"""


@pytest.mark.parametrize(
    ("imported", "started"),
    [
        (
            "from cluster_hook.processes import run_command",
            "run_command(sys.argv[1:], name='', deadline_s=9)",
        ),
        ("from cluster_act.ways.process import run", "run(sys.argv[1:], changes=True)"),
    ],
    ids=["hook", "act"],
)
def test_a_command_that_has_just_been_started_ends_with_us(imported: str, started: str) -> None:
    command = ["sleep", f"100.{os.getpid()}{time.monotonic_ns()}"]
    code = AT_ITS_START.format(imported=imported, started=started)
    whole = [sys.executable, "-c", code, *command]
    done = subprocess.run(whole, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert "interrupted by SIGTERM" in done.stderr
    assert command not in [words_of(one) for one in Path("/proc").glob("[0-9]*")]


def words_of(process: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_text(errors="replace").split("\0")[:-1]
    return []
