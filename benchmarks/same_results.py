"""Whether a change of the code changed any verdict: 60 simulated jobs, and any captures beside them.

    python -m benchmarks.same_results take JOBS RESULTS.json [CAPTURE …]    JOBS is made where missing
    python -m benchmarks.same_results compare BEFORE.json AFTER.json        exit code 1 where they differ

`take` uses the `cluster-analyse` of the Python that runs it. So: take with the code before, take with the
code after, compare. Numbers may differ in their last digits only where a sum is formed in another order.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: Relative difference from which two numbers count as different.
TOLERANCE = 1e-9
SHAPES = (
    "--tp 4 --pp 2 --dp 2",
    "--tp 2 --pp 2 --dp 4 --ranks-per-host 4",
    "--tp 8 --pp 1 --dp 4",
    "--tp 1 --pp 1 --dp 16 --dp-mode overlap",
    "--tp 2 --pp 4 --dp 2 --vpp 2",
    "--tp 2 --pp 4 --dp 2 --p2p batch --missing-records 0.01",
    "--tp 2 --pp 2 --dp 4 --ep 4 --expert-sigma 0.05",
    "--tp 4 --pp 2 --dp 2 --cp 2 --sequence-sigma 0.1 --form db",
    "--tp 2 --pp 4 --dp 4 --p2p rendezvous --wait-fields mixed --missing-ranks 5",
    "--tp 4 --pp 2 --dp 4 --detail no_matrix --framework ms --noise ar1 --steps 2",
)
FAULTS = (
    "",
    "slow_rank:1.25",
    "slow_rank:1.4,pattern=intermittent,duty=0.4",
    "slow_host:1.15",
    "slow_link:4",
    "slow_nic:6",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    take = actions.add_parser("take")
    take.add_argument("jobs", type=Path)
    take.add_argument("results", type=Path)
    take.add_argument("captures", type=Path, nargs="*")
    compare = actions.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.action == "take":
        results = taken(options.jobs, options.captures)
        options.results.write_text(json.dumps(results, indent=1, sort_keys=True))
        return 0
    before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    different = list(differences(before, after))
    print("\n".join(different[:200]) or f"the same: {len(before)} results")
    return bool(different)


def taken(jobs: Path, captures: Sequence[Path]) -> dict[str, Any]:
    """Return what `cluster-analyse` says of each job and capture, by name."""
    names = {f"job-{number:02d}": command for number, command in enumerate(_commands())}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda item: _simulated(jobs / item[0], item[1]), names.items()))
        runs = [*((name, jobs / name) for name in names), *((path.name, path) for path in captures)]
        said = list(pool.map(lambda run: _said(run[1], jobs / "outputs" / run[0]), runs))
    return dict(zip((name for name, _ in runs), said, strict=True))


def _commands() -> Iterator[list[str]]:
    for number, shape in enumerate(SHAPES):
        for fault in FAULTS:
            scenario = ["--scenario", fault] if fault else []
            yield [*shape.split(), *scenario, "--seed", str(100 + number)]


def _simulated(path: Path, arguments: Sequence[str]) -> None:
    if not path.exists():
        program = Path(sys.executable).with_name("cluster-simulate")
        subprocess.run([str(program), str(path), "--quiet", *arguments], check=True)


def _said(run: Path, output: Path) -> Any:
    program = Path(sys.executable).with_name("cluster-analyse")
    command = [program, run, "--output", output, "--no-report", "--format", "json", "--quiet"]
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, check=False
    )
    document = json.loads(done.stdout) if done.stdout else {"stderr": done.stderr[-2000:]}
    return {"exit": done.returncode, **document}


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Give a line for each place where two results differ; what only `after` has is no difference."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before:
            if key not in after:
                yield f"{path}/{key}: gone"
            else:
                yield from differences(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{path}/{position}")
    elif isinstance(before, float) and isinstance(after, float):
        if not math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{path}: {before} → {after}"
    elif before != after:
        yield f"{path}: {before!r} → {after!r}"


if __name__ == "__main__":
    sys.exit(main())
