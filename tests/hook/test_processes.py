from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cluster_hook.processes import run_command
from tests.commands import HANGS_S, ended, wait_until


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_command_that_ends_well_gives_its_output() -> None:
    end = run_command(python("print('hello')"), name="it", deadline_s=HANGS_S, capture=True)
    assert (end.code, end.stdout) == (0, "hello\n")


def test_a_failure_is_said_with_the_last_line_of_stderr() -> None:
    code = "import sys; print('first', file=sys.stderr); print('why\\n', file=sys.stderr); sys.exit(3)"
    assert run_command(python(code), name="it", deadline_s=HANGS_S).reason == "it ended with code 3: why"


def test_a_crash_names_the_signal() -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert run_command(python(code), name="it", deadline_s=HANGS_S).reason == "it was killed by SIGKILL"


def test_a_command_that_is_not_there_is_a_value_too() -> None:
    end = run_command(["/no/such/command"], name="it", deadline_s=HANGS_S)
    assert end.code == 127
    assert "/no/such/command" in end.reason


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # A shell writes it in milliseconds; Python may start for seconds where others compute.
    hangs = ["sh", "-c", f"sleep 100 & echo $! > {shlex.quote(str(pid_file))}; wait"]
    end = run_command(hangs, name="it", deadline_s=2.0)
    assert end.code is None
    assert "did not end within 2 s" in end.reason
    wait_until_gone(int(pid_file.read_text()))


def test_what_a_command_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        f"import subprocess; open({str(pid_file)!r}, 'w').write(str(subprocess.Popen(['sleep', '100']).pid))"
    )
    assert run_command(python(code), name="it", deadline_s=HANGS_S).code == 0
    wait_until_gone(int(pid_file.read_text()))


def test_a_flood_of_output_does_not_stop_a_command() -> None:
    code = "import sys; sys.stderr.write('x\\n' * 200_000); sys.stdout.write('y' * 1_000_000)"
    with open(os.devnull, "w") as log:
        end = run_command(python(code), name="it", deadline_s=30, capture=True, log=log)
    assert (end.code, len(end.stdout), len(end.last_lines)) == (0, 1_000_000, 30)


def test_a_log_that_takes_nothing_stops_no_command() -> None:
    code = "import sys; sys.stderr.write('x\\n' * 200_000); raise SystemExit(3)"
    with io.TextIOWrapper(open("/dev/full", "ab", buffering=0), write_through=True) as log:
        end = run_command(python(code), name="it", deadline_s=30, log=log)
    assert (end.code, end.last_lines[-1]) == (3, "x")


def test_output_that_is_no_text_is_passed_on_all_the_same() -> None:
    end = run_command(
        python("import os; os.write(2, b'\\xff\\n'); raise SystemExit(1)"), name="it", deadline_s=HANGS_S
    )
    assert end.last_lines == ("\ufffd",)


def test_a_command_gets_its_stdin_and_one_that_ignores_it_is_no_error() -> None:
    text = "z" * 200_000
    end = run_command(
        python("import sys; print(len(sys.stdin.read()))"),
        name="it",
        deadline_s=HANGS_S,
        capture=True,
        stdin=text,
    )
    assert end.stdout == "200000\n"
    assert run_command(python("pass"), name="it", deadline_s=HANGS_S, stdin=text).code == 0


def test_a_command_is_ended_when_it_is_told_to_stop() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    sleeping = python("import time; time.sleep(100)")
    assert run_command(sleeping, name="it", deadline_s=HANGS_S, stop=stop).code is None


def test_sigterm_ends_the_commands_of_the_hook_before_the_hook(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waiting = f"import os; reader = open({str(fifo)!r}); os.write(2, b'here\\n'); reader.read()"
    code = (
        "import sys\n"
        "from cluster_hook.processes import run_command\n"
        "from cluster_run.command_line import interruptible\n"
        "with interruptible():\n"
        f"    run_command([sys.executable, '-c', {waiting!r}], name='it', deadline_s=120)\n"
    )
    with subprocess.Popen(python(code), stderr=subprocess.PIPE, text=True) as hook, fifo.open("w"):
        assert hook.stderr is not None
        assert hook.stderr.readline() == "here\n"  # the hook passes it on, so it waits for its command by now
        hook.send_signal(signal.SIGTERM)
        ended(hook)
        with pytest.raises(OSError, match="No such device"):  # nobody reads it any more
            os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)


def wait_until_gone(pid: int) -> None:
    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    wait_until(is_gone)
