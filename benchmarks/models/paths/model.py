"""Model B: longest paths through graphs that scripts write, scattered as a real trace; MindSpore's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.models.format import write_json
from benchmarks.models.paths import database, text
from benchmarks.models.paths.cases import CLASSES, case
from benchmarks.models.paths.job import Job
from benchmarks.models.paths.lengths import Repaired
from benchmarks.models.paths.record import Recorder
from benchmarks.models.paths.shape import Shape, Trouble
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_run.findings import Finding

NAME = "paths"
FAULT_CLASSES = tuple(CLASSES)


def make(mode: str, seed: int, fault_class: str | None, folder: Path) -> KnownJob:
    """Write the job of a seed into `folder`, and return what is true of it."""
    shape, troubles = case(mode, seed, fault_class)
    return made(shape, troubles, seed, folder, mode, fault_class or "healthy")


def made(
    shape: Shape,
    troubles: Sequence[Trouble],
    seed: int,
    folder: Path,
    mode: str = "plain",
    name: str = "healthy",
) -> KnownJob:
    """Solve a job, write it, and return what is true of it."""
    job = Job(shape, seed)
    solve = job.durations.solved
    whole = solve(troubles)
    clean_ms = solve().step_ms if troubles else whole.step_ms
    faults = []
    for number, trouble in enumerate(troubles):
        alone_ms = solve([trouble]).step_ms - clean_ms if len(troubles) > 1 else whole.step_ms - clean_ms
        others = [one for other, one in enumerate(troubles) if other != number]
        beside_ms = whole.step_ms - solve(others).step_ms if others else alone_ms
        faults.append(_known(shape, trouble, alone_ms, beside_ms))
    _write(Recorder(job, whole), folder)

    def saving_ms(finding: Finding) -> float:
        repaired = _repaired(finding)
        return max(whole.step_ms - solve(troubles, repaired).step_ms, clean_ms - solve([], repaired).step_ms)

    about = (
        f"tensor {shape.tensor} data {shape.data} stages {shape.stages} experts {shape.experts} "
        f"{f'{shape.way} {shape.style}' if shape.stages > 1 else shape.gradients}, {shape.form}"
    )
    lost_ms = whole.step_ms - clean_ms
    return KnownJob(
        folder, mode, seed, name, about, shape.n_ranks, whole.step_ms, lost_ms, tuple(faults), saving_ms
    )


def _known(shape: Shape, trouble: Trouble, alone_ms: float, beside_ms: float) -> KnownFault:
    ranks = {*trouble.ranks, *(end for wire in trouble.wires for end in wire)}
    if not ranks:
        ranks = {rank for host in trouble.hosts for rank in shape.host_ranks(host)}
    return KnownFault(
        kind=trouble.kind,
        accepted=trouble.accepted or (trouble.kind,),
        ranks=tuple(sorted(ranks)),
        hosts=tuple(str(host + 1) for host in trouble.hosts),
        links=trouble.wires,
        cost_ms=alone_ms,
        marginal_ms=beside_ms,
    )


def _repaired(finding: Finding) -> Repaired:
    """Return what a finding asks to repair; what this model has no part for repairs nothing."""
    if finding.kind in ("slow_rank", "slow_host", "host_bound", "input_bound"):
        return Repaired(chips=frozenset(int(rank) for rank in finding.ranks))
    both = [(int(link.src), int(link.dst)) for link in finding.links]
    return Repaired(
        wires=frozenset([*both, *((b, a) for a, b in both)]),
        samples=finding.kind == "data_imbalance",
        experts=finding.kind == "expert_imbalance",
        stages=finding.kind == "stage_imbalance",
    )


def _write(recorder: Recorder, folder: Path) -> None:
    """Write all ranks as they lie in a run directory."""
    shape = recorder.job.shape
    for rank in range(shape.n_ranks):
        host = rank // shape.per_host + 1
        capture = f"worker{host}_{70000 + rank}_20260102030405006_ascend_ms"
        output = folder / "cluster_profiler" / str(host) / "profiler" / capture / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (text if shape.form == "text" else database).write_rank(recorder, rank, output)
        groups = {
            recorder.keys[kind, members]: {
                "group_name": recorder.keys[kind, members],
                "group_rank": members.index(rank),
                "global_ranks": list(members),
            }
            for kind, members in recorder.keys
            if rank in members
        }
        metadata = {"parallel_group_info": groups}
        write_json(output.parent / "profiler_metadata.json", metadata)
        info = {"rank_id": str(rank), "ms_version": "2.7.0", "profiler_level": "Level1"}
        write_json(output.parent / f"profiler_info_{rank}.json", info)
    lines = [f"198.51.100.{host + 1} {host + 1}\n" for host in range(shape.n_hosts)]
    (folder / "host_ips_mapping.txt").write_text("".join(lines))
