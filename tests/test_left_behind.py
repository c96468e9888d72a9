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
