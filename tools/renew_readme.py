"""Puts what `cluster-analyse` prints for the demo's job into the README, so that the README never lies.

python tools/renew_readme.py [README.md]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.__main__ import FAULTS, JOB

_BLOCK = re.compile(r"(<!-- demo:begin[^\n]*-->\n```\n).*?(```\n<!-- demo:end -->)", re.DOTALL)


def demo_output() -> str:
    """Simulate the demo's job, analyse it, and return what the command prints on stdout."""
    with tempfile.TemporaryDirectory() as directory:
        return analyse_demo(directory)


def analyse_demo(directory: str) -> str:
    """Do the same in a directory, as its `run1`."""
    scenario = [argument for fault in FAULTS for argument in ("--scenario", fault)]
    _command(directory, "cluster_simulate", "run1", *JOB, *scenario)
    return _command(directory, "cluster_analysis", "run1")


def _command(directory: str, module: str, *arguments: str) -> str:
    argv = [sys.executable, "-m", module, *arguments]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=True).stdout  # noqa: S603


def with_demo_output(readme: str, output: str) -> str:
    """Return the README's text with `output` in its block."""
    return _BLOCK.sub(
        lambda match: f"{match[1]}$ cluster-analyse run1\n{output.rstrip()}\n{match[2]}", readme
    )


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "README.md")
    path.write_text(with_demo_output(path.read_text(), demo_output()))
