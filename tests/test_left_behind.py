"""What holds for the machinery of the tests themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.layers import ROOT
from tests.left_behind import marked
from tests.needed import needs_sshd

_TESTS = """
import subprocess
import time
import pytest
from demo.sshd import SshLab

def test_that_hangs(tmp_path):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    with SshLab(tmp_path) as lab:
        lab.start("127.0.0.2")
        print("begun", flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
@needs_sshd
def test_where_pytest_is_killed_no_server_and_no_process_of_its_tests_is_left(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import _no_server_stays_behind\n")
    (tmp_path / "test_hangs.py").write_text(_TESTS)
    below = tmp_path / "below"
    options = ("-s", "-p", "no:cacheprovider", f"--basetemp={below}", f"--rootdir={tmp_path}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as tests:
        assert tests.stdout is not None
        assert any("begun" in line for line in tests.stdout)
        # The server writes its title over its environment; `sleep` names no file.
        assert len(marked(os.fsencode(f"{below}/"))) >= 2
        tests.send_signal(signal.SIGKILL)
    while marked(os.fsencode(f"{below}/")):
        time.sleep(0.1)


_HANGS = """
import time

def test_fails_and_then_hangs(tmp_path_factory):
    before = tmp_path_factory.getbasetemp() / "before"
    if before.exists():
        time.sleep(60)
    before.touch()
    raise ValueError

def test_passes():
    pass
"""


def test_a_second_try_that_hangs_fails_and_the_other_tests_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_setup\n")
    (tmp_path / "test_hangs.py").write_text(_HANGS)
    options = ("-p", "no:cacheprovider", f"--rootdir={tmp_path}", "--reruns=1", "-o", "timeout=1")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert "1 failed, 1 passed, 1 rerun in" in ended.stdout, ended
