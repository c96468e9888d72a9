"""A simulated job as a run directory, as cluster-collect leaves it, and the truth next to it."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_run import layout
from cluster_run.command_line import SIGNALS, is_ignored, release_signals, signals_held
from cluster_run.errors import ClusterError, InputError, spoken
from cluster_run.files import write_text_whole
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile, FileList, HostOutcome, Manifest, manifest_to_json
from cluster_run.version import VERSION
from cluster_simulate.files import capture_text, communication_text
from cluster_simulate.files.analysis_database import write_analysis_database
from cluster_simulate.files.captured import CapturedJob, capture
from cluster_simulate.files.legacy import legacy_files
from cluster_simulate.files.observed import EPOCH_US, seen_ranks
from cluster_simulate.files.profiler_database import write_profiler_database
from cluster_simulate.job.job import SimulatedJob
from cluster_simulate.job.layout import server_id
from cluster_simulate.job.spec import Form, Framework
from cluster_simulate.job.truth import Truth, truth, truth_path, truth_to_json

#: When the files of a job are dated unless somebody says another time, in ns since 1970.
DATED_NS = int(EPOCH_US) * 1000
_OUTPUT = layout.PROFILER_OUTPUT_NAME


def write_run(
    job: SimulatedJob,
    out: Path,
    form: Form = "text",
    framework: Framework = "pt",
    n_processes: int = 1,
    dated_ns: int = DATED_NS,
) -> Truth:
    """Write a run directory, manifest last, and `truth_path(out)` next to it; return the truth.

    The same job gives the same bytes, however many processes write it. The captures' files are dated
    `dated_ns`, in ns since 1970; what they hold is not.

    Raises:
        InputError: `out` exists already, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: there is something already", "give a directory that does not exist yet")
    try:
        captured = capture(job, framework)
        hosts = _write_hosts(_Output(captured, out, form, dated_ns), n_processes)
        write_text_whole(out / layout.RANK_TABLE_NAME, rank_table_json(job))
        mapping = "".join(f"{server_id(host)} {host + 1}\n" for host in range(job.spec.n_hosts))
        write_text_whole(out / layout.MAPPING_NAME, mapping)
        answer = truth(job)
        write_text_whole(truth_path(out), truth_to_json(answer))
        manifest = Manifest(what=("analysis",), hosts=hosts, tool_version=VERSION)
        write_text_whole(out / layout.MANIFEST_NAME, manifest_to_json(manifest))
    except OSError as error:
        raise InputError(f"{out}: cannot write: {spoken(error)}") from error
    return answer


def rank_table_json(job: SimulatedJob) -> str:
    """Return hccl.json, version 1.0."""
    spec, servers = job.spec, []
    for host in range(spec.n_hosts):
        devices = [
            {"device_id": str(spec.device_of(rank)), "device_ip": _device_address(rank), "rank_id": str(rank)}
            for rank in spec.ranks_of(host)
        ]
        servers.append({"server_id": server_id(host), "device": devices, "host_nic_ip": "reserve"})
    table = {
        "version": "1.0",
        "server_count": str(len(servers)),
        "server_list": servers,
        "status": "completed",
    }
    return json.dumps(table, indent=4) + "\n"


def _device_address(rank: int) -> str:
    return f"10.{100 + rank // 62500}.{rank // 250 % 250}.{rank % 250 + 1}"


@dataclass(frozen=True)
class _Output:
    """Files to write: their places, forms and dates."""

    captured: CapturedJob
    out: Path
    form: Form
    dated_ns: int


def _write_hosts(output: _Output, n_processes: int) -> tuple[HostOutcome, ...]:
    """Write the files of all hosts, each process every n-th one."""
    n_hosts = output.captured.job.spec.n_hosts
    if n_processes <= 1:
        return tuple(_write_host(output, host) for host in range(n_hosts))
    # A fork shares the arrays of the job; any other way would copy them to every process.
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    shares = [range(first, n_hosts, n_processes) for first in range(n_processes)]
    writers = [
        # Daemons end with this process; others it would wait for, and they for it, once it is interrupted.
        context.Process(target=_write_share, args=(output, share, results), daemon=True)
        for share in shares
    ]
    with signals_held():
        for writer in writers:
            writer.start()
    outcomes: list[HostOutcome] = []
    failures: list[ClusterError] = []
    for _ in writers:
        written = results.get()
        if isinstance(written, ClusterError):
            failures.append(written)
        else:
            outcomes += written
    for writer in writers:
        writer.join()
    if failures:
        raise failures[0]
    return tuple(sorted(outcomes, key=lambda outcome: int(outcome.host)))


def _write_share(
    output: _Output, hosts: range, results: multiprocessing.SimpleQueue[list[HostOutcome] | ClusterError]
) -> None:
    """Write some hosts in a process of their own; an error is handed back as a value."""
    for number in SIGNALS:
        if not is_ignored(number):
            signal.signal(number, signal.SIG_DFL)
    release_signals()
    try:
        results.put([_write_host(output, host) for host in hosts])
    except ClusterError as error:
        results.put(error)
    except OSError as error:
        results.put(InputError(f"{output.out}: cannot write: {spoken(error)}"))


def _write_host(output: _Output, host: int) -> HostOutcome:
    """Write the files of all ranks of a host."""
    captured, spec = output.captured, output.captured.job.spec
    home = layout.host_directory(output.out, HostId(str(host + 1)))
    home.mkdir(parents=True, exist_ok=True)
    present = set(seen_ranks(captured.job))
    files: list[CollectedFile] = []
    for rank in spec.ranks_of(host):
        if rank in present:
            contents = _rank_files(captured, rank, output.form)
            files += [_write(output, home, name, content) for name, content in contents.items()]
    return HostOutcome(HostId(str(host + 1)), ServerId(server_id(host)), "complete", FileList(files))


def _rank_files(captured: CapturedJob, rank: int, form: Form) -> Mapping[str, bytes]:
    """Return the files of a rank by their path below the host's profiler directory."""
    if form == "r1":
        return legacy_files(captured, rank)
    name = capture_text.capture_name(captured, rank)
    files = {
        f"{name}/profiler_info_{rank}.json": capture_text.profiler_info_json(captured, rank, form),
        f"{name}/profiler_metadata.json": json.dumps(capture_text.metadata(captured, rank)).encode(),
    }
    if form == "db":
        databases = database_files(captured, rank)
        return files | {f"{name}/{_OUTPUT}/{path}": content for path, content in databases.items()}
    files |= {
        f"{name}/{_OUTPUT}/step_trace_time.csv": capture_text.step_trace_csv(captured, rank),
        f"{name}/{_OUTPUT}/op_statistic.csv": capture_text.op_statistic_csv(captured, rank),
        f"{name}/{_OUTPUT}/api_statistic.csv": capture_text.api_statistic_csv(captured, rank),
    }
    detail = captured.job.spec.detail
    if detail != "totals":
        files[f"{name}/{_OUTPUT}/communication.json"] = communication_text.communication_json(captured, rank)
    if detail == "full":
        files[f"{name}/{_OUTPUT}/communication_matrix.json"] = communication_text.matrix_json(captured, rank)
    return files


def database_files(captured: CapturedJob, rank: int) -> Mapping[str, bytes]:
    """Return the databases of a rank by name."""
    is_pytorch = captured.framework == "pt"
    kind, analysis = ("pytorch", "analysis.db") if is_pytorch else ("mindspore", "communication_analyzer.db")
    with tempfile.TemporaryDirectory(prefix="cluster-simulate-") as folder:
        profiler, small = Path(folder) / f"ascend_{kind}_profiler_{rank}.db", Path(folder) / analysis
        write_profiler_database(captured, rank, profiler)
        write_analysis_database(captured, rank, small)
        return {path.name: path.read_bytes() for path in (profiler, small)}


def _write(output: _Output, home: Path, name: str, content: bytes) -> CollectedFile:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(output.dated_ns, output.dated_ns))
    return CollectedFile(
        path=path.relative_to(output.out).as_posix(),
        source=f"/home/summary/profiler/{name}",
        size_bytes=len(content),
        mtime_ns=output.dated_ns,
        sha256=hashlib.sha256(content).hexdigest(),
        state="stored",
    )
