"""What a run of `cluster-analyse` does not pay for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
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
unused = {"pandas", "distributed", "dask", "yaml", "pydoc", "cluster_analysis.insight.files"}
loaded = sorted(unused & set(sys.modules))
print(loaded, pa.default_memory_pool().backend_name)
"""

#: Imports Arrow's functions as the command does, then says which are missing, what some find, and of help.
FUNCTIONS = """
import sys
from cluster_analysis import lean_imports
if sys.argv[1] == "other":  # a pyarrow that asks for more of its functions while it is imported
    lean_imports._FewFunctions.list_functions = lambda functions: []
lean_imports.keep_help_texts_out()
import pyarrow as pa
import pyarrow.compute as pc
asked = sys.stdin.read().split()
print([name for name in asked if not callable(getattr(pc, name, None))], hasattr(pc, "no_such_function"))
print(pc.sum(pa.array([1, 2])), pc.and_(pa.array([True]), pa.array([False])).to_pylist())
print(set(asked) <= set(dir(pc)), pc.list_functions() == pc.function_registry().list_functions())
print("with" if "Parameters" in (pc.sum.__doc__ or "") else "without", "help")
"""


@pytest.mark.parametrize(("pyarrow", "texts"), [("this", "without help"), ("other", "with help")])
def test_every_function_of_arrow_is_there_when_it_is_asked_for(pyarrow: str, texts: str) -> None:
    asked = [name for name, value in vars(pc).items() if hasattr(value, "__arrow_compute_function__")]
    done = subprocess.run(
        [sys.executable, "-c", FUNCTIONS, pyarrow],
        input=" ".join(asked),
        capture_output=True,
        text=True,
        timeout=580,
        check=True,
    )
    assert len(asked) > 200
    assert done.stdout.splitlines() == ["[] False", "3 [False]", "True True", texts]


@pytest.mark.parametrize("scheduler", ["auto", "processes"])
def test_a_run_on_this_machine_imports_no_pandas_and_no_dask_and_sets_no_memory_aside(
    tmp_path: Path, scheduler: str
) -> None:
    run = write_small_run(tmp_path / "run")
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run), "--quiet", "--no-insight", "--scheduler", scheduler],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
        env=environment,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "[] system"
