"""What the analysis says of a job that really ran, with a delay that was put in.

    python -m benchmarks.executed [--kind data|pipeline|both] [--delay computes|feeds|none] [--python PYTHON]

Eight ranks run on this machine's CPUs with gloo between them, with the delay and without it. Kineto's traces
are mapped to the files of a run directory and judged. What the delay costs is the difference of both runs'
middle steps: a busy machine makes single steps long. Where it was busier in one of the runs, what was put in
tells more. Needs torch (`pip install torch`) in the interpreter that `--python` names; the rest of the
project does not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

from benchmarks.executed.kineto import RankTrace, write_run
from cluster_analysis import judging, pipeline
from cluster_analysis.options import AnalyseOptions

_RANKS, _PER_HOST, _CULPRIT = 8, 4, 5
_DELAYS: dict[str, dict[str, float]] = {
    "computes": {"computes": 0.3},
    "feeds": {"feeds_ms": 60.0},
    "none": {},
}
#: A layer forwards, and what a rank sleeps in a step: four forwards and backwards, and half for the update.
_WORK_MS = 20.0
_KERNELS_MS = 4 * 3 * _WORK_MS + 0.5 * _WORK_MS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs and print what was true and what was said."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kind", choices=("data", "pipeline", "both"), default="both")
    options.add_argument("--delay", choices=sorted(_DELAYS), default="computes")
    options.add_argument("--steps", type=int, default=6)
    options.add_argument("--python", default=sys.executable, help="interpreter with torch")
    options.add_argument("--keep", type=Path, help="leave traces and files in this new folder")
    chosen = options.parse_args(arguments)
    has_torch = subprocess.run([chosen.python, "-c", "import torch"], capture_output=True, check=False)
    if has_torch.returncode:
        print(f"executed job: left out, {chosen.python} has no torch (pip install torch)", file=sys.stderr)
        return 1
    for kind in ("data", "pipeline") if chosen.kind == "both" else (chosen.kind,):
        plan = {
            "kind": kind, "ranks": _RANKS, "steps": chosen.steps, "layers": 4 if kind == "data" else 1,
            "work_ms": _WORK_MS, "input_ms": 2.0, "delays": {},
        }  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="executed-") as folder:
            without = run(plan, chosen.python, Path(folder) / "without")
            plan["delays"] = {str(_CULPRIT): _DELAYS[chosen.delay]}
            with_it = run(plan, chosen.python, Path(folder) / "with")
            _print(kind, chosen.delay, without, with_it, Path(folder))
            if chosen.keep is not None:
                shutil.copytree(folder, chosen.keep / kind)
    return 0


def run(plan: dict[str, Any], python: str, folder: Path) -> list[RankTrace]:
    """Run all ranks of a job, and return their traces."""
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    call = [python, "-m", "benchmarks.executed.worker", str(folder / "plan.json")]
    ranks = []
    for rank in range(plan["ranks"]):
        with (folder / f"log-{rank}").open("w") as log:
            ranks.append(subprocess.Popen([*call, str(rank), str(folder)], stdout=log, stderr=log))
    try:
        codes = [one.wait(timeout=300) for one in ranks]
    finally:
        for one in ranks:
            one.kill()
    for rank, code in enumerate(codes):
        if code:
            raise SystemExit(f"rank {rank} ended with {code}: {(folder / f'log-{rank}').read_text()[-800:]}")
    return [
        RankTrace(
            rank,
            json.loads((folder / f"trace-{rank}.json").read_text()),
            json.loads((folder / f"groups-{rank}.json").read_text()),
        )
        for rank in range(plan["ranks"])
    ]


def put_in_ms(delay: str) -> float:
    """Return by how much a delay lengthens the culprit's step."""
    return _DELAYS[delay].get("computes", 0.0) * _KERNELS_MS + _DELAYS[delay].get("feeds_ms", 0.0)


def steps_ms(traces: list[RankTrace]) -> list[float]:
    """Return how long each step took, from the first rank's begin to the last one's end."""
    return [
        (max(one.steps[step][1] for one in traces) - min(one.steps[step][0] for one in traces)) / 1000
        for step in traces[0].steps
    ]


def _print(kind: str, delay: str, without: list[RankTrace], with_it: list[RankTrace], folder: Path) -> None:
    clean, slow = steps_ms(without), steps_ms(with_it)
    true_ms = median(slow) - median(clean)
    print(f"\n{kind}: {_RANKS} ranks, {len(slow)} steps; delay of rank {_CULPRIT}: {delay}")
    for name, some in (("with", slow), ("without", clean)):
        scatter = f"mean {mean(some):.1f} ± {pstdev(some):.1f}"
        print(f"  {name} it the middle step takes {median(some):.1f} ms, {scatter}")
    print(f"  so the delay costs {true_ms:.1f} ms; {put_in_ms(delay):.1f} ms were put in")
    for name, traces in (("with", with_it), ("without", without)):
        place = folder / f"files-{name}"
        place.mkdir()
        write_run(traces, place, _PER_HOST)
        options = AnalyseOptions(run=place, scheduler="threads", n_workers=1, write_report=False)
        with pipeline.examined(options) as examined:
            document = judging.judged(examined).document
        share = document.replay.get("error_share")
        shown = "-" if share is None else f"{share:.2%}"
        print(f"  judged {name} it: {document.verdict}, replay error {shown}")
        for one in document.findings[:4]:
            cost = "no cost" if one.cost_ms_per_step is None else f"{one.cost_ms_per_step:.1f} ms"
            print(f"    {one.severity} {one.id}: {cost}, {one.confidence} confidence")


if __name__ == "__main__":
    sys.exit(main())
