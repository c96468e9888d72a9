"""`make fuzz`: hostile files for the readers, made of files of the simulator and of real ones.

python -m tools.fuzz SECONDS [FILE…]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.fuzz.columns import fuzz_columns

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
#: Which of its files are spoiled.
_SPOILED = ("communication*.json",)


def main(argv: Sequence[str]) -> int:
    """Run for so many seconds and return the exit code of the fuzzer."""
    seconds, *files = argv
    with tempfile.TemporaryDirectory() as folder:
        texts = [*files]
        job = Path(folder) / "job"
        subprocess.run([sys.executable, "-m", "cluster_simulate", str(job), *_JOB], check=True)  # noqa: S603
        found = sorted(path for pattern in _SPOILED for path in job.rglob(pattern))
        for number, path in enumerate(found):
            # One folder takes them all, so each needs a name of its own.
            copy = Path(folder) / f"text-{number}"
            copy.write_bytes(path.read_bytes())
            texts.append(str(copy))
        n_columns = fuzz_columns(next(job.rglob("communication.json")), Path(folder), float(seconds) / 4)
        print(f"fuzz: {n_columns} columns files were read or refused")
        return subprocess.run(["bash", str(_SCRIPT), seconds, *texts], check=False).returncode  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
