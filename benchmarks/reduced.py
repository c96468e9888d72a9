"""What reading on the host saves of files too large to move: `make bench-reduced`.

One rank on one SSH server on loopback: 100 MB of kernel_details.csv (1200 kinds, times at random) and 200 MB
of trace_view.json. Fetched as they are, the baseline, and with `--what columns`, by turns in one run, then
analysed. Processor time of server and reader, which the host would have, is told apart from the centre's.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.columns import lab_seconds
from benchmarks.jobs import work_directory
from benchmarks.measure import MIB, measure
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab

MB = 1e6
_N_KINDS = 1200
_WAYS = {"as they are": "full", "reduced": "columns"}
_HEADER = "Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes"
_BEGIN_US = 1_764_246_877_000_000


def main() -> None:
    """Print what both ways cost."""
    parser = argparse.ArgumentParser(prog="benchmarks.reduced", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--kernels", type=float, default=100.0, help="MB of kernel_details.csv")
    parser.add_argument("--timeline", type=float, default=200.0, help="MB of trace_view.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=work_directory()) as name:
        work = Path(name)
        output = work / "host" / "w_1_20250101010101000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / "profiler_info_0.json").write_text("{}")
        (output / "step_trace_time.csv").write_text("Step,Computing\n1,2\n")
        write_kernels(output / "kernel_details.csv", given.kernels * MB)
        write_timeline(output / "trace_view.json", given.timeline * MB)
        print(f"{'':14}{'wire':>12}{'collecting':>12}{'analysing':>12}{'host':>12}   processor time")
        for turn in range(given.turns):
            for way, what in _WAYS.items():
                _line(way, what, work, turn)
        for path in (output / "kernel_details.csv", output / "trace_view.json"):
            _line_of_reader(path, work)


def _line(way: str, what: str, work: Path, turn: int) -> None:
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


def _line_of_reader(path: Path, work: Path) -> None:
    """Print what reading one file takes on its host."""
    code = (
        "import sys; from cluster_reduce.reduction import reduced; print(len(reduced(sys.argv[1].encode())))"
    )
    one = measure([sys.executable, "-c", code, str(path)], work / "log")
    n_mb = path.stat().st_size / MB
    print(f"{path.name:20}{n_mb:6.0f} MB become {int(one.output):,} bytes: ", end="")
    print(f"{n_mb / one.cpu_s:.0f} MB/s, {one.peak_bytes / MIB:.0f} MiB", flush=True)


def write_kernels(path: Path, size: float) -> None:
    """Write rows as the profiler does, each kind in turn."""
    chance = random.Random(0)
    with path.open("w") as stream:
        written, row = stream.write(_HEADER + "\n"), 0
        while written < size:
            kind = row % _N_KINDS
            written += stream.write(
                f"10,aclnnMatmul_{kind}_MatMulV2AiCore_MatMulV2,MatMulV2,dynamic,AI_CORE,"
                f"{_BEGIN_US + row}.640\t,{chance.uniform(2, 400):.3f},{chance.uniform(0, 9):.3f},"
                f'"""{64 + kind},1024;1024,4096"""\n'
            )
            row += 1


def write_timeline(path: Path, size: float) -> None:
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
    main()
