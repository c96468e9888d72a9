"""What a run of `cluster-analyse` does not pay for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.runs import write_small_run

#: A second alone, a minute where other suites share two processors.
pytestmark = pytest.mark.timeout(600)

#: Runs the command as its script does, then tells what it loaded.
PROGRAM = """
import sys
from cluster_analysis.__main__ import run
try:
    run()
except SystemExit as stop:
    assert stop.code == 0, stop.code
import pyarrow as pa
loaded = sorted({"pandas", "distributed", "dask.array"} & set(sys.modules))
print(loaded, pa.default_memory_pool().backend_name)
"""


def test_a_small_run_imports_no_pandas_and_no_cluster_and_sets_no_memory_aside(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run), "--quiet"],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
        env=environment,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "[] system"
