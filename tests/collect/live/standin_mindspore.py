"""A stand-in for a rank of MindSpore with DynamicProfilerMonitor, made after what is known of MindSpore 2.10.

It shares a memory file by hour, has a child that reads the file every 2 s and takes any other time of it for
a change, takes what the file holds when it starts, captures both ends of the range, and begins late where it
is inside the range. Arguments: the directory of the configuration, that of the job, the mean step in seconds.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from pathlib import Path


def main() -> None:
    configuration, job, step_s = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    rank = int(os.environ["RANK_ID"])
    path = configuration / "profiler_config.json"
    if rank == 0 and not path.exists():
        path.write_text(json.dumps({"start_step": -1, "stop_step": -1}))
    memory = Path("/dev/shm") / time.strftime("DynamicProfileShm%Y%m%d%H")
    with memory.open("ab") as stream:
        stream.truncate(4096)
    with memory.open("r+b") as stream:
        shared = mmap.mmap(stream.fileno(), 4096)
    if os.fork() == 0:
        while os.getppid() != 1:
            time.sleep(0.5)
        os._exit(0)
    seen_s = looked_s = 0.0
    wanted: tuple[int, int] | None = None
    done: tuple[int, int] | None = None
    begun = left = step = 0
    directory = "./dyn_profile_data"
    while not (job / "end").exists():
        time.sleep(step_s)
        step += 1
        tell(job, rank, step)
        if time.time() - looked_s > 2.0:
            looked_s = time.time()
            at_s = path.stat().st_mtime if path.exists() else seen_s
            if at_s != seen_s:
                seen_s = at_s
                told = json.loads(path.read_text())
                wanted = (told["start_step"], told["stop_step"])
                directory = told.get("prof_path", directory)
        if left:
            left -= 1
            if not left:
                write(Path(directory), rank, done or (0, 0), range(begun, step + 1))
        elif wanted and wanted != done and wanted[0] <= step <= wanted[1] and wanted[0] > 0:
            done, begun, left = wanted, step, wanted[1] - wanted[0]
            if not left:
                write(Path(directory), rank, done, range(step, step + 1))
    shared.close()


def tell(job: Path, rank: int, step: int) -> None:
    """Write a line of the job's log; a rank has started once that tells a step."""
    if rank == 0:
        with (job / "train.log").open("a") as log:
            log.write(f"epoch: 1 step: {step}, loss is 1.5\n")
    if step == 1:
        (job / f"rank{rank}.started").touch()


def write(directory: Path, rank: int, asked: tuple[int, int], steps: range) -> None:
    """Leave a capture; the directory is called after what was asked for."""
    stamp = time.strftime("%Y%m%d%H%M%S") + "000"
    name = f"node_{os.getpid()}_{stamp}_ascend_ms"
    capture = directory / f"rank{rank}_start{asked[0]}_stop{asked[1]}" / name
    output = capture / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (capture / f"profiler_info_{rank}.json").write_text("{}")
    rows = "".join(f"{step},1.0\n" for step in steps)
    (output / "step_trace_time.csv").write_text(f"Step,Computing\n{rows}")


if __name__ == "__main__":
    main()
