"""The command line of cluster-simulate."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_run.errors import ClusterError, ExitCode

if TYPE_CHECKING:
    from cluster_analysis.simulation.spec import JobSpec
    from cluster_analysis.simulation.truth import Truth

_PROGRAM = "cluster-simulate"
#: From here on it pays to write with all processors.
_MANY_RANKS = 256
_EPILOG = """\
OUT becomes a run directory like those of cluster-collect: rank table, host mapping, manifest and
cluster_profiler/<host>/profiler/…. The truth, with what each fault really costs, is written beside it,
as OUT.truth.json: inside, it could be taken for a rank table, and the analysis must not see it.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate a job and write it; return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(_simulate(arguments))
    except ClusterError as error:
        print(f"{_PROGRAM}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print(f"{_PROGRAM}: interrupted", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)


def _simulate(arguments: argparse.Namespace) -> ExitCode:
    # Imported here so that --help and mistakes on the command line need neither numpy nor a second.
    from cluster_analysis.simulation.events import simulate  # noqa: PLC0415
    from cluster_analysis.simulation.faults import parse_scenario  # noqa: PLC0415
    from cluster_analysis.simulation.rundir import write_run  # noqa: PLC0415
    from cluster_analysis.simulation.truth import truth_path  # noqa: PLC0415

    faults = [parse_scenario(text) for text in arguments.scenario]
    job = simulate(_spec(arguments), faults, arguments.seed, arguments.run)
    n_processes = (os.cpu_count() or 1) if job.spec.n_ranks >= _MANY_RANKS else 1
    answer = write_run(job, arguments.out, arguments.form, arguments.framework, n_processes)
    if not arguments.quiet:
        _tell(answer, arguments.out, truth_path(arguments.out), job.spec.n_ranks)
    return ExitCode.DONE


def _spec(arguments: argparse.Namespace) -> JobSpec:
    from cluster_analysis.simulation.spec import Healthy, JobSpec, Noise  # noqa: PLC0415
    from cluster_run.ids import parse_number_ranges  # noqa: PLC0415

    healthy = Healthy(
        stage_work=arguments.stage_work,
        sequence_sigma=arguments.sequence_sigma,
        expert_sigma=arguments.expert_sigma,
        silicon_sigma=arguments.silicon_sigma,
        gc_every=arguments.gc_every,
        checkpoint_every=arguments.checkpoint_every,
        inner_halves=arguments.inner_halves,
        clock_sigma_ms=arguments.clock_sigma_ms,
        drift_ppm=arguments.drift_ppm,
        missing_ranks=tuple(sorted(parse_number_ranges(arguments.missing_ranks)))
        if arguments.missing_ranks
        else (),
        missing_steps=tuple(sorted(parse_number_ranges(arguments.missing_steps)))
        if arguments.missing_steps
        else (),
        missing_records=arguments.missing_records,
        uneven_counts=arguments.uneven_counts,
    )
    return JobSpec(
        tp=arguments.tp,
        pp=arguments.pp,
        dp=arguments.dp,
        cp=arguments.cp,
        ep=arguments.ep,
        vpp=arguments.vpp,
        microbatches=arguments.microbatches,
        steps=arguments.steps,
        first_step=arguments.first_step,
        ranks_per_host=arguments.ranks_per_host,
        segments=20 if arguments.realistic_size else arguments.segments,
        p2p=arguments.p2p,
        dp_mode=arguments.dp_mode,
        sequence_parallel=arguments.sequence_parallel,
        wait_fields=arguments.wait_fields,
        detail=arguments.detail,
        declares_groups=not arguments.no_metadata,
        noise=Noise(family=arguments.noise),
        healthy=healthy,
    )


def _tell(answer: Truth, out: Path, path: Path, n_ranks: int) -> None:
    print(
        f"{out}: {n_ranks} ranks, {answer.step_ms:.1f} ms a step, "
        f"{answer.healthy_step_ms:.1f} ms without the faults"
    )
    for fault in answer.faults:
        places = {
            "links": ", ".join(f"{src}-{dst}" for src, dst in fault.links),
            "hosts": ", ".join(fault.hosts),
            "ranks": ", ".join(map(str, fault.ranks))
            if len(fault.ranks) <= 8
            else f"{len(fault.ranks)} ranks",
        }
        key = (
            "links" if fault.links else "hosts" if "host" in fault.kind or "uplink" in fault.kind else "ranks"
        )
        where = f" {key} {places[key]}" if places[key] else ""
        print(f"  {fault.kind} ×{fault.severity:g}{where}: costs {fault.cost_ms_per_step:.2f} ms a step")
    print(f"  the truth is in {path}")


def _parser() -> argparse.ArgumentParser:
    from cluster_analysis.simulation.scenarios import SCENARIO_HELP  # noqa: PLC0415
    from cluster_run.version import VERSION  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Write a run directory of a simulated training job with known faults.",
        epilog=f"{SCENARIO_HELP}\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="run directory to write; must not exist yet")
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="SCENARIO",
        help="a fault; may be repeated; see below",
    )
    parser.add_argument("--seed", type=int, default=1, help="same seed, same bytes (default %(default)s)")
    parser.add_argument(
        "--run",
        type=int,
        default=0,
        metavar="N",
        help="the N-th run on the same machines (default 0)",
    )
    parser.add_argument("--framework", choices=("pt", "ms"), default="pt", help="PyTorch or MindSpore")
    parser.add_argument("--form", choices=("text", "db", "r1"), default="text", help="form of the files")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    _add_layout(parser.add_argument_group("the job"))
    _add_variations(parser.add_argument_group("what varies though nothing is broken"))
    return parser


def _weights(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _add_layout(group: argparse._ArgumentGroup) -> None:
    for name, default, text in (
        ("tp", 4, "tensor-parallel ranks"),
        ("pp", 4, "pipeline stages"),
        ("dp", 4, "data-parallel replicas"),
        ("cp", 1, "context-parallel ranks"),
        ("ep", 1, "expert-parallel ranks; must divide --dp"),
        ("vpp", 1, "model chunks a stage (interleaved pipeline)"),
        ("microbatches", 8, "micro-batches a step"),
        ("steps", 5, "profiled steps"),
        ("first-step", 10, "number of the first one"),
        ("ranks-per-host", 8, "ranks of one host"),
        ("segments", 2, "compute segments of a forward pass"),
    ):
        group.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default {default})"
        )
    group.add_argument(
        "--realistic-size",
        action="store_true",
        help="some 360 operators a rank and step, as real jobs",
    )
    group.add_argument(
        "--p2p", choices=("eager", "rendezvous", "batch"), default="eager", help="how stages send"
    )
    group.add_argument(
        "--dp-mode", choices=("flat", "overlap", "zero3"), default="flat", help="how gradients move"
    )
    group.add_argument(
        "--sequence-parallel", action="store_true", help="gather and scatter instead of all-reduce"
    )


def _add_variations(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--wait-fields", choices=("full", "idle", "mixed"), default="full", help="how profilers fill them"
    )
    group.add_argument(
        "--noise", choices=("lognormal", "ar1"), default="lognormal", help="family of the noise"
    )
    group.add_argument(
        "--stage-work", type=_weights, default=(), metavar="X,X,…", help="work of each stage, 1 is normal"
    )
    group.add_argument(
        "--detail", choices=("full", "no_matrix", "totals"), default="full", help="which files there are"
    )
    group.add_argument("--no-metadata", action="store_true", help="captures do not say their groups")
    for name, default, text in (
        ("sequence-sigma", 0.0, "spread of micro-batches"),
        ("expert-sigma", 0.0, "spread of experts' loads"),
        ("silicon-sigma", 0.003, "spread of devices"),
        ("clock-sigma-ms", 2.0, "spread of host clocks"),
        ("drift-ppm", 5.0, "drift of host clocks"),
    ):
        group.add_argument(
            f"--{name}", type=float, default=default, metavar="X", help=f"{text} (default {default})"
        )
    group.add_argument(
        "--missing-records",
        type=float,
        metavar="X",
        help="share of operators that files lack (0; ar1: 0.05)",
    )
    for name, text in (
        ("gc-every", "every rank pauses for garbage collection every N steps (0: never)"),
        ("checkpoint-every", "all ranks write a checkpoint every N steps (0: never)"),
        ("uneven-counts", "N ranks lack one operator"),
    ):
        group.add_argument(f"--{name}", type=int, default=0, metavar="N", help=text)
    group.add_argument(
        "--inner-halves", action="store_true", help="PCIe between the halves of a host, HCCS inside them"
    )
    group.add_argument("--missing-ranks", metavar="RANKS", help="ranks without files, like 3,8-15")
    group.add_argument("--missing-steps", metavar="STEPS", help="steps that the files lack")
