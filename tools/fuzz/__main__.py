"""`make fuzz`: hostile files for the compiled reader, made of files of the simulator and of real ones.

python -m tools.fuzz SECONDS [FILE…]
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
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
_FORMS = (("text", ("communication*.json", "*.csv")), ("db", ("*.db",)))
#: A fuzzer's texts are at most 64 KiB; a database that is cut there is refused by its head alone.
_SMALL_PAGE_BYTES, _SMALL_ROWS = 512, 24


def main(argv: Sequence[str]) -> int:
    """Run for so many seconds and return the exit code of the fuzzer."""
    seconds, *files = argv
    with tempfile.TemporaryDirectory() as folder:
        texts = [*files]
        for form, patterns in _FORMS:
            job = Path(folder) / form
            command = [sys.executable, "-m", "cluster_simulate", str(job), *_JOB, "--form", form]
            subprocess.run(command, check=True)  # noqa: S603
            found = sorted(path for pattern in patterns for path in job.rglob(pattern))
            for number, path in enumerate(found):
                # One folder takes them all, so each needs a name of its own.
                copy = Path(folder) / f"{form}-{number}"
                copy.write_bytes(path.read_bytes())
                texts.append(str(copy))
                if form == "db":
                    texts.append(str(_small(path, copy.with_suffix(".small"))))
        return subprocess.run(["bash", str(_SCRIPT), seconds, *texts], check=False).returncode  # noqa: S603, S607


def _small(path: Path, copy: Path) -> Path:
    """Write the first rows of each table as a database of small pages: deep trees and long texts."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {_SMALL_PAGE_BYTES}")
        connection.execute("ATTACH ? AS whole", (str(path),))
        tables = connection.execute(
            "SELECT name, sql FROM whole.sqlite_master WHERE type = 'table'"
        ).fetchall()
        # All at first, so that each begins on one of the first pages, where the fuzzer looks for it.
        for _, sql in tables:
            connection.execute(sql)
        for name, _ in tables:
            connection.execute(f"INSERT INTO main.{name} SELECT * FROM whole.{name} LIMIT {_SMALL_ROWS}")  # noqa: S608
    return copy


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
