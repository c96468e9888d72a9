"""`make bench-large`: captures that are large another way than by ranks: many steps, and many kernels a rank.

3076 steps: 8 ranks, 245 MB of communication.json and 276 MB of communication_matrix.json. Kernels: 100 MB of
kernel_details.csv a rank (300 000 rows of 1200 kinds), one file that all ranks have by hard links, so that
the disk holds it once; every rank reads and sums all of it.

Too large to move: one rank on one SSH server on loopback with such a file and 200 MB of trace_view.json,
fetched as they are, the baseline, and with `--what columns`, by turns. Processor time of server and reader,
which the host would have, is told apart from the centre's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.columns import lab_seconds
from benchmarks.jobs import THIN, made, simulated, size_bytes, work_directory
from benchmarks.measure import MIB, measure
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab

MB = 1e6
_N_STEPS = 3076
_N_KINDS = 1200
_N_TURNS = 3
_WAYS = {"as they are": "full", "reduced": "columns"}
_BEGIN_US = 1_764_246_877_000_000
_HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),"
    "Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,"
    "Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),"
    "aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,cube_utilization(%)"
)
_TYPES = ("MatMulV2", "Add", "Cast", "FlashAttentionScore", "RmsNorm", "Mul")


def main(argv: Sequence[str]) -> int:
    """Print a line a capture."""
    parser = argparse.ArgumentParser(prog="benchmarks.large", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64], help="ranks with kernels")
    parser.add_argument("--megabytes", type=int, default=100, help="kernel_details.csv of a rank")
    parser.add_argument("--only", choices=("steps", "kernels", "reduced"), help="one of these")
    arguments = parser.parse_args(argv)
    if arguments.only in (None, "reduced"):
        reduced(arguments.megabytes)
    if arguments.only == "reduced":
        return 0
    print(f"{'':42}{'read':>10}{'wall':>10}{'CPU':>10}{'MB/s of CPU':>13}{'peak memory':>14}")
    if arguments.only != "kernels":
        line(f"{_N_STEPS} steps of 8 ranks", long_job(), "communication*.json")
    if arguments.only != "steps":
        for n_ranks in arguments.ranks:
            for kind in ("with op_statistic.csv", "without"):
                job = kernels_job(n_ranks, arguments.megabytes, with_statistic=kind != "without")
                line(f"kernels of {n_ranks} ranks, {kind}", job, "kernel_details.csv")
    return 0


def reduced(megabytes: int) -> None:
    """Print what fetching large files takes as they are, and reduced."""
    with tempfile.TemporaryDirectory(dir=work_directory()) as name:
        work = Path(name)
        output = work / "host" / "w_1_20250101010101000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / "profiler_info_0.json").write_text("{}")
        (output / "step_trace_time.csv").write_text("Step,Computing\n1,2\n")
        _write_kernels(output / "kernel_details.csv", megabytes * MB)
        _write_timeline(output / "trace_view.json", 2 * megabytes * MB)
        print(f"{'':14}{'wire':>12}{'collecting':>12}{'analysing':>12}{'host':>12}   processor time")
        for turn in range(_N_TURNS):
            for way, what in _WAYS.items():
                _collected(way, what, work, turn)
        for path in sorted(output.glob("[kt]*")):
            _reader(path, work)


def _collected(way: str, what: str, work: Path, turn: int) -> None:
    run = work / "run"
    shutil.rmtree(run, ignore_errors=True)
    with SshLab(work / f"lab-{what}-{turn}") as lab:
        inventory = _inventory(lab, work)
        command = ["-m", "cluster_collect", "--inventory", str(inventory), "--output", str(run), "-q"]
        command += ["--what", what, "--columns-as-root"]
        collected = measure([sys.executable, *command], work / "log")
        host_s = lab_seconds(lab)
    if collected.exit_code:
        raise SystemExit(f"cluster-collect ended with {collected.exit_code}:\n{collected.output[-2000:]}")
    (host,) = read_manifest(run / "manifest.json").hosts
    command = ["-m", "cluster_analysis", str(run), "--quiet", "--no-report"]
    analysed = measure([sys.executable, *command], work / "log")
    seconds = "".join(f"{one:10.1f} s" for one in (collected.cpu_s, analysed.cpu_s, host_s))
    print(f"{way:14}{host.wire_bytes / MB:9.3f} MB{seconds}", flush=True)


def _reader(path: Path, work: Path) -> None:
    """Print what reading one file takes on its host."""
    code = (
        "import sys; from cluster_reduce.reduction import reduced; print(len(reduced(sys.argv[1].encode())))"
    )
    one = measure([sys.executable, "-c", code, str(path)], work / "log")
    n_mb = path.stat().st_size / MB
    print(f"{path.name:20}{n_mb:6.0f} MB become {int(one.output):,} bytes: ", end="")
    print(f"{n_mb / one.cpu_s:.0f} MB/s, {one.peak_bytes / MIB:.0f} MiB", flush=True)


def line(name: str, job: Path, pattern: str) -> None:
    """Analyse one capture and print what it took."""
    work = work_directory()
    output = work / "output-large"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "cluster_analysis", str(job), "--output", str(output), "-v"]
    one = measure(command, work / "large.log")
    size = size_bytes(job, pattern)
    report = size_bytes(output, "report.html")
    shutil.rmtree(output, ignore_errors=True)
    print(
        f"{name:42}{size / MB:7.0f} MB{one.wall_s:8.1f} s{one.cpu_s:8.1f} s{size / MB / one.cpu_s:13.0f}"
        f"{one.peak_bytes / MIB:10.0f} MiB  page {report / MB:.1f} MB"
        + ("" if one.exit_code in (0, 3) else f"  exit {one.exit_code}"),
        flush=True,
    )


def long_job() -> Path:
    """Return a capture of thousands of steps."""
    sizes = ("--tp", "1", "--pp", "4", "--dp", "2", "--microbatches", "2", "--segments", "1")
    return made(f"long-{_N_STEPS}", lambda path: simulated(path, *sizes, "--steps", str(_N_STEPS)))


def kernels_job(n_ranks: int, megabytes: int, *, with_statistic: bool) -> Path:
    """Return a job whose ranks have many kernels, in five steps."""
    table = made(f"kernels-{megabytes}.csv", lambda path: _write_kernels(path, megabytes * MB))

    def make(path: Path) -> None:
        replicas = str(n_ranks // 8)
        simulated(path, "--tp", "4", "--pp", "2", "--dp", replicas, "--steps", "5", *THIN)
        for output in path.rglob("ASCEND_PROFILER_OUTPUT"):
            (output / "kernel_details.csv").unlink(missing_ok=True)
            os.link(table, output / "kernel_details.csv")
            if not with_statistic:
                (output / "op_statistic.csv").unlink()
        # What the manifest says of these files is no longer so.
        (path / "manifest.json").unlink(missing_ok=True)

    return made(f"kernels-{n_ranks}-{megabytes}{'' if with_statistic else '-alone'}", make)


def _write_kernels(path: Path, size: float) -> None:
    """Write rows as the profiler does, each kind in turn, until there are enough bytes."""
    chance = random.Random(0)
    rest = "N/A,12.34,123456,1.5,0.12,0.3,0.02,87.5"
    with path.open("w") as stream:
        stream.write(_HEADER + "\n")
        written, row = 0, 0
        while written < size:
            kind = row % _N_KINDS
            name = _TYPES[kind % len(_TYPES)]
            length = 64 * (1 + kind // len(_TYPES))
            start, time = f"1764246877{row:06d}.640", f"{chance.uniform(2, 400):.3f}"
            written += stream.write(
                f"{10 + row % 5},0,4294967295,{row},2,aclnn{name}_{kind}_{name}AiCore_{name},{name},dynamic,"
                f'AI_CORE,{start}\t,{time},0.5,40,0,NO,"""{length},1024;1024,4096""",DT_BF16;DT_BF16,ND;ND,'
                f'"""{length},4096""",DT_BF16,ND,{rest}\n'
            )
            row += 1


def _write_timeline(path: Path, size: float) -> None:
    """Write calls of PyTorch and CANN and the kernels that they launch, in steps of 2000."""
    chance = random.Random(0)
    begin_us, number = float(_BEGIN_US), 0
    with path.open("w") as stream:
        written = stream.write("[")
        while written < size:
            events = []
            if number % 2000 == 0:
                events.append(_event(f"ProfilerStep#{number // 2000}", begin_us, 80_000.0, "cpu_op", {}))
            number += 1
            launch = {"connection_id": number}
            events += [
                _event("aten::mm", begin_us, 20.0, "cpu_op", {"Sequence number": number, "Thread": 7}),
                _event("Node@launch", begin_us + 5, 8.0, "", {**launch, "level": "node"}),
                _event(
                    "MatMul", begin_us + chance.uniform(20, 400), 30.0, "", {**launch, "Task Type": "AI_CORE"}
                ),
                _event("Computing", begin_us + 30, chance.uniform(5, 38), "", {}),
            ]
            begin_us += 40
            text = ", ".join(map(json.dumps, events))
            written += stream.write((", " if number > 1 else "") + text)
        stream.write("]")


def _event(
    name: str, begin_us: float, length_us: float, kind: str, said: dict[str, object]
) -> dict[str, object]:
    event = {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": f"{begin_us:.3f}", "dur": round(length_us, 3)}
    return {**event, "cat": kind, "args": said} if kind else {**event, "args": said}


def _inventory(lab: SshLab, work: Path) -> Path:
    server = lab.start("127.0.0.2")
    host = {"address": server.address, "port": server.port, "profiler_root": str(work / "host")}
    defaults = {
        "user": lab.user,
        "identity_file": str(lab.identity_file),
        "known_hosts": str(lab.known_hosts),
    }
    path = work / "hosts.json"
    path.write_text(json.dumps({"version": 1, "defaults": defaults, "hosts": [host]}))
    return path


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
