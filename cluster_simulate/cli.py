"""cluster-simulate: from its command line to a run directory and a few lines on the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_run.command_line import exit_code_of, language_of
from cluster_run.errors import ExitCode
from cluster_run.ids import format_number_ranges
from cluster_run.said.chinese import translated
from cluster_run.standard_streams import write_result
from cluster_simulate.options import build_parser, spec_of

if TYPE_CHECKING:
    from cluster_simulate.job.truth import Truth

_PROGRAM = "cluster-simulate"
#: From here on it pays to write with all processors.
_MANY_RANKS = 256


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate a job and write it; return the exit code."""
    arguments = build_parser(_PROGRAM).parse_args(argv)
    return exit_code_of(_PROGRAM, lambda: _simulate(arguments))


def _simulate(arguments: argparse.Namespace) -> ExitCode:
    # Imported here so that --help and mistakes on the command line need neither numpy nor a second.
    from cluster_simulate.files.rundir import write_run  # noqa: PLC0415
    from cluster_simulate.job.events import simulate  # noqa: PLC0415
    from cluster_simulate.job.faults import parse_scenario  # noqa: PLC0415
    from cluster_simulate.job.truth import truth_path, truth_to_json  # noqa: PLC0415

    faults = [parse_scenario(text) for text in arguments.scenario]
    job = simulate(spec_of(arguments), faults, arguments.seed, arguments.run)
    n_processes = (os.cpu_count() or 1) if job.spec.n_ranks >= _MANY_RANKS else 1
    # As a profiler does: dates separate the files of one job from another's.
    dated_ns = time.time_ns() if arguments.dated is None else arguments.dated * 10**9
    answer = write_run(job, arguments.out, arguments.form, arguments.framework, n_processes, dated_ns)
    if arguments.json:
        write_result(truth_to_json(answer))
    elif not arguments.quiet:
        said = _summary(answer, arguments.out, truth_path(arguments.out), job.spec.n_ranks)
        write_result(translated(said, language_of(None, sys.stdout)))
    return ExitCode.DONE


def _summary(answer: Truth, out: Path, path: Path, n_ranks: int) -> str:
    lines = [
        f"{out}: {n_ranks} ranks, {answer.step_ms:.1f} ms a step, "
        f"{answer.healthy_step_ms:.1f} ms without the faults"
    ]
    for fault in answer.faults:
        where = ""
        if fault.links:
            where = f" links {','.join(f'{src}-{dst}' for src, dst in fault.links)}"
        elif "host" in fault.kind or "uplink" in fault.kind:
            where = f" hosts {','.join(fault.hosts)}"
        elif fault.ranks:
            where = f" ranks {format_number_ranges(fault.ranks)}"
        lines.append(
            f"  {fault.kind} ×{fault.severity:g}{where}: costs {fault.cost_ms_per_step:.2f} ms a step"
        )
    lines.append(f"  the truth is in {path}")
    return "".join(f"{line}\n" for line in lines)
