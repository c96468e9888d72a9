"""By how much a quoted saving moves when a share of the records of communication is lost.

    python -m benchmarks.detection.lost_records [--share 0.02] [--trials 3] [--first-seed 1000] [--jobs 22]

Asks it of the real trace, in both forms of its messages, and of plain jobs of `streams` with pipelines. A
finding that is no longer there has moved by all of its saving.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.detection.modelled import said_of
from benchmarks.detection.real_trace import FOLDER, FORMS
from benchmarks.models.streams import model as streams
from benchmarks.models.streams.scenarios import scenario

#: Records of one operator are in both, by one name.
_FILES = ("communication.json", "communication_matrix.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what each capture quotes with all records, and by how much that moves."""
    options_of = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options_of.add_argument("--share", type=float, default=0.02)
    options_of.add_argument("--trials", type=int, default=3, help="losses of other records each")
    options_of.add_argument("--first-seed", type=int, default=1_000)
    options_of.add_argument("--jobs", type=int, default=22, help="seeds of `streams` that are looked through")
    options = options_of.parse_args(arguments)
    moves: list[float] = []
    with tempfile.TemporaryDirectory(prefix="lost-") as scratch:
        for name, run in _captures(Path(scratch), options.first_seed, options.jobs):
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


def _captures(scratch: Path, first_seed: int, n_jobs: int) -> Iterator[tuple[str, Path]]:
    if FOLDER.exists():
        yield from ((form, FOLDER / form) for form in FORMS)
    for number, seed in enumerate(range(first_seed, first_seed + n_jobs)):
        fault_class = streams.FAULT_CLASSES[number % len(streams.FAULT_CLASSES)]
        job, faults = scenario("plain", seed, fault_class)
        if job.pp > 1:
            run = scratch / str(seed)
            streams.made(job, faults, seed, run)
            yield f"streams {seed} '{fault_class}', {job.schedule} {job.exchanges}", run
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
    for first in sorted(to.rglob(_FILES[0])):
        dice = random.Random(f"{seed}/{first.relative_to(to)}")
        lost: set[tuple[str, str, str]] = set()
        for path in (first, first.with_name(_FILES[1])):
            if not path.exists():
                continue
            steps = json.loads(path.read_text(encoding="utf-8"))
            for step, kinds in steps.items():
                for kind, operators in kinds.items():
                    if path == first:
                        lost |= {(step, kind, name) for name in operators if _is_lost(name, share, dice)}
                    kinds[kind] = {
                        name: rows for name, rows in operators.items() if (step, kind, name) not in lost
                    }
            path.write_text(json.dumps(steps), encoding="utf-8")
        n_lost += len(lost)
    return n_lost


def _is_lost(name: str, share: float, dice: random.Random) -> bool:
    return not name.startswith("Total") and dice.random() < share


if __name__ == "__main__":
    sys.exit(main())
