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
unused = {"pandas", "distributed", "dask", "cluster_analysis.insight.files"}
loaded = sorted(unused & set(sys.modules))
print(loaded, pa.default_memory_pool().backend_name)
"""


@pytest.mark.parametrize("insight", [False, True])
@pytest.mark.parametrize("scheduler", ["auto", "processes"])
def test_a_run_on_this_machine_imports_no_pandas_and_no_dask_and_sets_no_memory_aside(
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


#: Tells, in the process that forks, what is loaded when the first worker is.
FORKING = """
import os, sys
real = os.fork
def fork():
    if "cluster_analysis.engine.local" in sys.modules:
        of_formats = [one for one in sys.modules if ".sources.db" in one or ".columns.columns_file" in one]
        print("loaded:", sorted({"sqlite3", "hashlib"} & set(sys.modules)), of_formats, flush=True)
    return real()
os.fork = fork
from cluster_analysis.__main__ import run
run()
"""


def test_workers_of_a_run_of_text_are_forked_without_what_reads_databases_and_columns(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FORKING,
            str(run),
            "-q",
            "--no-insight",
            "--scheduler",
            "processes",
            "--workers",
            "2",
        ],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("loaded:")] == ["loaded: [] []"] * 2


LOOKING = """
import sys
from pathlib import Path
from cluster_analysis.discovery.discover import discover
found = discover(Path(sys.argv[1]))
print(len(found.sources), sorted({"numpy", "pyarrow"} & set(sys.modules)))
"""


def test_captures_of_text_are_found_without_numpy_and_arrow(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-c", LOOKING, str(run)], capture_output=True, text=True, timeout=580, check=True
    )
    n_sources, heavy = done.stdout.split(maxsplit=1)
    assert int(n_sources) > 0
    assert heavy == "[]\n"
