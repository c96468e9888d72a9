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
unused = {"pandas", "distributed", "cluster_analysis.insight.files"}
loaded = sorted(unused & set(sys.modules))
print(loaded, pa.default_memory_pool().backend_name)
"""


@pytest.mark.parametrize("insight", [False, True])
@pytest.mark.parametrize("scheduler", ["auto", "processes"])
def test_a_run_on_this_machine_imports_no_pandas_and_sets_no_memory_aside(
    tmp_path: Path, scheduler: str, insight: bool
) -> None:
    run = write_small_run(tmp_path / "run")
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    files = "--insight" if insight else "--no-insight"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run), "--quiet", files, "--scheduler", scheduler],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
        env=environment,
    )
    assert done.stderr == ""
    expected = ["cluster_analysis.insight.files"] if insight else []
    assert done.stdout.splitlines()[-1] == f"{expected} system"
