"""By how much a quoted saving moves when a share of the records of communication is lost.

    python -m benchmarks.detection.lost_records [--share 0.02] [--trials 3] [--first-seed 1000] [--jobs 22]
        [--model paths]

Asks it of the real trace, in both forms of its messages, and of plain jobs of a model with pipelines. A
finding that is no longer there has moved by all of its saving.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.detection.modelled import MODELS, said_of
from benchmarks.detection.real_trace import FOLDER, FORMS

#: Records of one operator are in both, by one name.
_FILES = ("communication.json", "communication_matrix.json")
#: Tables that say its name, and the column that does.
_TABLES = {
    "CommAnalyzerTime": "hccl_op_name",
    "CommAnalyzerBandwidth": "hccl_op_name",
    "CommAnalyzerMatrix": "hccl_op_name",
    "COMMUNICATION_OP": "(SELECT value FROM STRING_IDS WHERE id = opName)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what each capture quotes with all records, and by how much that moves."""
    options_of = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options_of.add_argument("--share", type=float, default=0.02)
    options_of.add_argument("--trials", type=int, default=3, help="losses of other records each")
    options_of.add_argument("--first-seed", type=int, default=1_000)
    options_of.add_argument("--jobs", type=int, default=22, help="seeds that are looked through")
    options_of.add_argument("--model", choices=sorted(MODELS), default="streams")
    options = options_of.parse_args(arguments)
    moves: list[float] = []
    with tempfile.TemporaryDirectory(prefix="lost-") as scratch:
        for name, run in _captures(Path(scratch), options.model, options.first_seed, options.jobs):
            said = dearest(run)
            if said is None:
                continue
            own = [moved(run, *said, options.share, trial) for trial in range(options.trials)]
            moves += own
            print(
                f"{name}: {said[0]} {said[1]:.1f} ms; {', '.join(f'{one:+.1%}' for one in own)}", flush=True
            )
    sizes = sorted(abs(one) for one in moves)
    if sizes:
        print(f"{len(moves)} trials: {sizes[len(sizes) // 2]:.2%} in the middle, {sizes[-1]:.2%} at most")
    return 0


def _captures(scratch: Path, model: str, first_seed: int, n_jobs: int) -> Iterator[tuple[str, Path]]:
    if FOLDER.exists():
        yield from ((form, FOLDER / form) for form in FORMS)
    classes = MODELS[model].FAULT_CLASSES
    for number, seed in enumerate(range(first_seed, first_seed + n_jobs)):
        fault_class = classes[number % len(classes)]
        run = scratch / str(seed)
        job = MODELS[model].make("plain", seed, fault_class, run).about
        if not any(one in job for one in ("pp1 ", "stages 1 ")):
            yield f"{model} {seed} '{fault_class}', {job}", run
        shutil.rmtree(run)


def dearest(run: Path) -> tuple[str, float] | None:
    """Return the finding that costs the most by its name, and its ms a step; None where nothing is quoted."""
    costs = [(one.cost_ms_per_step, one.id) for one in said_of(run).findings if one.cost_ms_per_step]
    return max(costs)[::-1] if costs else None


def moved(run: Path, name: str, cost_ms: float, share: float, seed: int) -> float:
    """Return by which share of it a finding's saving moves when records are lost; -1 where it is gone."""
    with tempfile.TemporaryDirectory(prefix="lost-") as folder:
        lossy = Path(folder) / "run"
        without_records(run, lossy, share, seed)
        now = [one.cost_ms_per_step for one in said_of(lossy).findings if one.id == name]
    return ((now[0] or 0.0) if now else 0.0) / cost_ms - 1.0


def without_records(run: Path, to: Path, share: float, seed: int) -> int:
    """Copy a run without a share of each rank's records of operators, and return how many are gone.

    Step totals stay as they are: profilers sum them up from the device's own events.
    """
    shutil.copytree(run, to)
    n_lost = 0
    for folder in sorted({one.parent for name in (_FILES[0], "*.db") for one in to.rglob(name)}):
        dice = random.Random(f"{seed}/{folder.relative_to(to)}")
        n_lost += _without_entries(folder, share, dice) + _without_rows(folder, share, dice)
    return n_lost


def _without_entries(folder: Path, share: float, dice: random.Random) -> int:
    """Take a share of the operators out of a rank's text files."""
    lost: set[tuple[str, str, str]] = set()
    for path in (folder / name for name in _FILES):
        if not path.exists():
            continue
        steps = json.loads(path.read_text(encoding="utf-8"))
        for step, kinds in steps.items():
            for kind, operators in kinds.items():
                if path.name == _FILES[0]:
                    lost |= {(step, kind, name) for name in operators if _is_lost(name, share, dice)}
                kinds[kind] = {
                    name: rows for name, rows in operators.items() if (step, kind, name) not in lost
                }
        path.write_text(json.dumps(steps), encoding="utf-8")
    return len(lost)


def _without_rows(folder: Path, share: float, dice: random.Random) -> int:
    """Take the same operators out of all of a rank's databases."""
    is_lost: dict[str, bool] = {}
    for path in sorted(folder.glob("*.db")):
        with contextlib.closing(sqlite3.connect(path)) as database:
            tables = [
                one for (one,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for table in (one for one in _TABLES if one in tables):
                rows = database.execute(f"SELECT rowid, {_TABLES[table]} FROM {table}").fetchall()
                for _, name in rows:
                    if name not in is_lost:
                        is_lost[name] = _is_lost(name, share, dice)
                gone = [(row,) for row, name in rows if is_lost[name]]
                database.executemany(f"DELETE FROM {table} WHERE rowid = ?", gone)
            database.commit()
    return sum(is_lost.values())


def _is_lost(name: str, share: float, dice: random.Random) -> bool:
    return not name.startswith("Total") and dice.random() < share


if __name__ == "__main__":
    sys.exit(main())
