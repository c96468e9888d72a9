"""How fast the communication file of a rank becomes columns, and how much memory that takes.

    make bench-decode
    python -m benchmarks.decode [FILE…] [--ops 20000]

Prints MB/s of processor time in a warm process, beside `json.loads` of the same bytes (which makes no
columns yet), and the peak memory above what a process has that has read another file, as a multiple of the
file. The last column of speed is with the places of all operators, which the files for Insight are copied
from. Without files, some of the real proportions are made. A file below 1 MB, as captures to try things out
have, is measured with its operators repeated until it has 2 MB, each time under a further running number.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.compiled.operator_columns import operators_of_files
from cluster_analysis.sources.compiled.reader import compiled, in_use
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.communication_json import read_communication

MB = 1e6
N_ROUNDS = 40
GROUPS = 8
GROWN_BYTES = 2_000_000
STEPS = 5


def main(argv: list[str] | None = None) -> int:
    """Measure the given files."""
    parser = argparse.ArgumentParser(description="Measure the decoding of communication.json.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--ops", type=int, nargs="+", default=[1785, 4000, 20000], help="operators of the files that are made"
    )
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    # As the command does before it reads.
    if arguments.memory_of:
        print(peak_bytes_above_start(arguments.memory_of))
        return 0
    print(in_use())
    with tempfile.TemporaryDirectory() as folder:
        files = [
            grown(path, Path(folder) / f"{number}-grown.json") for number, path in enumerate(arguments.files)
        ] or [write_example(Path(folder) / f"communication-{n_ops}.json", n_ops) for n_ops in arguments.ops]
        print(
            f"{'file':32} {'MB':>7} {'ours MB/s':>10} {'json.loads':>11} {'ratio':>6} {'memory':>7} "
            f"{'with places':>12}"
        )
        for path in files:
            print(line(path))
    return 0


def line(path: Path) -> str:
    """Measure one file."""
    size = path.stat().st_size
    ours = megabytes_per_second(path, lambda: read(path, with_spans=False))
    with_spans = megabytes_per_second(path, lambda: read(path))
    baseline = megabytes_per_second(path, lambda: json.loads(path.read_bytes()))
    child = [sys.executable, "-m", "benchmarks.decode", "--memory-of", str(path)]
    # As the command has it: see keep_no_spare_memory.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(child, check=True, capture_output=True, text=True, env=environment)
    peak = int(done.stdout)
    is_plain = compiled() is None or operators_of_files([str(path)], [0], with_places=True) is not None
    return (
        f"{str(path)[-32:]:32} {size / MB:7.2f} {ours:10.0f} {baseline:11.0f} {ours / baseline:6.1f} "
        f"{peak / size:6.1f}x {with_spans:12.0f}" + ("" if is_plain else "  left to Python")
    )


def read(path: Path, *, with_spans: bool = True) -> CommunicationTables:
    """Read a file as the analysis does."""
    return read_communication(path, 0, None, unheard, with_spans=with_spans)


def megabytes_per_second(path: Path, work: Callable[[], object]) -> float:
    """The best of several rounds, collector off as inside a task: others on the machine only slow it."""
    gc.collect()
    gc.disable()
    try:
        seconds = []
        for _ in range(N_ROUNDS):
            begin = time.process_time()
            work()
            seconds.append(time.process_time() - begin)
    finally:
        gc.enable()
    return path.stat().st_size / MB / max(min(seconds), 1e-9)


def peak_bytes_above_start(path: Path) -> int:
    """Peak memory of reading the file, above what a process has that has read a small one."""
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        # The first file a process reads costs 15 MB once: code that is loaded, and what Arrow keeps.
        read(write_example(Path(folder) / "communication.json", STEPS))
    before = peak_bytes()
    read(path)
    return peak_bytes() - before


def peak_bytes() -> int:
    """Peak resident memory of this process since it was started."""
    # Not getrusage: its peak is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(next(one for one in status.splitlines() if one.startswith("VmHWM")).split()[1]) * 1024


def grown(path: Path, target: Path) -> Path:
    """Return the file, or one of its operators repeated where it is too small to be timed."""
    n_times = round(GROWN_BYTES / path.stat().st_size)
    if path.stat().st_size >= GROWN_BYTES / 2:
        return path
    document = json.loads(path.read_text())
    for levels in document.values():
        for level, operators in levels.items():
            levels[level] = {
                key.replace("__", f"__{number}", 1): operator
                for number in range(n_times)
                for key, operator in operators.items()
            }
    target.write_text(json.dumps(document))
    return target


def write_example(path: Path, n_ops: int) -> Path:
    """Write a file of operators with the fields, digits and key lengths of real ones."""
    document = {
        f"step{step}": {
            "p2p": {},
            "collective": dict(example_op(step, index) for index in range(n_ops // STEPS)),
        }
        for step in range(STEPS)
    }
    path.write_text(json.dumps(document))
    return path


def example_op(step: int, index: int) -> tuple[str, dict[str, object]]:
    """One operator: HCCS used, the other transports zero, as real files have it."""
    zero = {
        "Transit Size(MB)": 0,
        "Transit Time(ms)": 0,
        "Bandwidth(GB/s)": 0,
        "Large Packet Ratio": 0,
        "Size Distribution": {},
    }
    used = {
        "Transit Size(MB)": 117.44051199999998,
        "Transit Time(ms)": 9.08862159375 + index * 1e-6,
        "Bandwidth(GB/s)": 12.9217,
        "Large Packet Ratio": 0.0,
        "Size Distribution": {"8.404992": [12, 7.850436843749999], "8.290304": [2, 1.23818475]},
    }
    group = 17522688603477080586 + index % GROUPS
    time_info = {
        "Start Timestamp(us)": 1736408883732241.5 + step * 1e6 + index * 977.25,
        "Elapse Time(ms)": 2.2811055625,
        "Transit Time(ms)": 1.2285845,
        "Wait Time(ms)": 0.0724014375,
        "Synchronization Time(ms)": 2e-05,
        "Idle Time(ms)": 0.9801196250000002,
        "Wait Time Ratio": 0.0557,
        "Synchronization Time Ratio": 0.0,
    }
    bandwidth = {
        "RDMA": zero,
        "HCCS": used,
        "PCIE": zero,
        "SDMA": {**used, "Size Distribution": {}},
        "SIO": zero,
    }
    name = f"hcom_allReduce__{group % 1000:03d}_{index}_1@{group}"
    return name, {"Communication Time Info": time_info, "Communication Bandwidth Info": bandwidth}


if __name__ == "__main__":
    sys.exit(main())
