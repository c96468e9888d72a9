"""What parsing makes of what the stand-in `profile` left: the steps alone, or a simulated capture of them.

With SIMULATED=FILE in the environment the capture is that of a job that the simulator makes by FILE;
a fault that stands there is in every capture made since. LATE_STEPS=N gives it the times of N steps later:
what a rank leaves that began late, and names its steps as it was asked to.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

#: By chance one healthy job in eighty is degraded in three steps; with these seeds none is.
_N_SEEDS = 40


def analyse(directory: str) -> None:
    capture = Path(directory)
    recorded = json.loads((capture / "PROF_000001_1_A" / "recorded.json").read_text())
    output = capture / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(exist_ok=True)
    if os.environ.get("SIMULATED"):
        _simulated(capture, recorded, Path(os.environ["SIMULATED"]))
    else:
        rows = "".join(f"0,{step},1.0\n" for step in recorded["steps"])
        (output / "step_trace_time.csv").write_text(f"Device_id,Step,Computing\n{rows}")
    (output / "analyse.done").touch()


def _simulated(capture: Path, recorded: dict[str, object], options: Path) -> None:
    steps = recorded["steps"]
    assert isinstance(steps, list)
    whole = options.parent / f"simulated-{steps[0]}"
    with whole.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # One rank makes the job of all, the others wait.
        if not whole.exists():
            _make(options, steps, whole)
    info = next(whole.glob(f"cluster_profiler/*/profiler/*/profiler_info_{recorded['rank']}.json"))
    for path in info.parent.rglob("*"):
        if path.is_file():
            to = capture / path.relative_to(info.parent)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
    late_us = int(os.environ.get("LATE_STEPS", "0")) * float((whole / "step_ms").read_text()) * 1000
    communication = capture / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    shifted = re.sub(
        r'("Start Timestamp\(us\)": )([\d.]+)',
        lambda found: f"{found[1]}{float(found[2]) + late_us!r}",
        communication.read_text(),
    )
    communication.write_text(shifted)


def _make(options: Path, steps: list[int], whole: Path) -> None:
    from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate, write_run  # noqa: PLC0415

    job = json.loads(options.read_text())
    # Of few steps a pause that every job has now and then would be most of what there is.
    steady = Healthy(hiccup_share=0.0)
    spec = JobSpec(**job["spec"], healthy=steady, steps=len(steps), first_step=steps[0])
    made = simulate(spec, [parse_scenario(one) for one in job["faults"]], seed=steps[0] % _N_SEEDS)
    part = whole.with_suffix(".part")
    write_run(made, part, form="text", framework="pt")
    (part / "step_ms").write_text(repr(made.step_ms))
    part.rename(whole)
