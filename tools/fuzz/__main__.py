"""`make fuzz`: hostile files for the compiled reader, made of files of the simulator and of real ones.

python -m tools.fuzz SECONDS [FILE…]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = Path(__file__).with_name("fuzz.sh")
_JOB = (
    "--tp",
    "2",
    "--pp",
    "2",
    "--dp",
    "1",
    "--steps",
    "2",
    "--microbatches",
    "2",
    "--segments",
    "1",
    "--quiet",
)
#: Forms of the job, and the files of each that are spoiled.
_FORMS = (("text", "communication*.json"), ("db", "*.db"))


def main(argv: Sequence[str]) -> int:
    """Run for so many seconds and return the exit code of the fuzzer."""
    seconds, *files = argv
    with tempfile.TemporaryDirectory() as folder:
        texts = [*files]
        for form, pattern in _FORMS:
            job = Path(folder) / form
            command = [sys.executable, "-m", "cluster_simulate", str(job), *_JOB, "--form", form]
            subprocess.run(command, check=True)  # noqa: S603
            for number, path in enumerate(sorted(job.rglob(pattern))):
                # One folder takes them all, so each needs a name of its own.
                copy = Path(folder) / f"{form}-{number}"
                copy.write_bytes(path.read_bytes())
                texts.append(str(copy))
        return subprocess.run(["bash", str(_SCRIPT), seconds, *texts], check=False).returncode  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
