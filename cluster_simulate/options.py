"""The options of cluster-simulate; every default is the one of the job spec."""

from __future__ import annotations

import argparse
from typing import get_args

from cluster_run.command_line import add_print_completion, named_path
from cluster_run.ids import parse_number_ranges
from cluster_run.version import VERSION
from cluster_simulate.job import spec as choices
from cluster_simulate.job.spec import Healthy, JobSpec, Noise
from cluster_simulate.scenarios import SCENARIO_HELP

_EPILOG = """\
OUT becomes a run directory like those of cluster-collect: rank table, host mapping, manifest and
cluster_profiler/<host>/profiler/…. The truth, with what each fault really costs, is written beside it,
as OUT.truth.json: inside, it could be taken for a rank table, and the analysis must not see it.
"""
#: Numbers of JobSpec that are options, and what they mean.
_JOB_NUMBERS = {
    "tp": "tensor-parallel ranks",
    "pp": "pipeline stages",
    "dp": "data-parallel replicas",
    "cp": "context-parallel ranks",
    "ep": "expert-parallel ranks; must divide --dp",
    "vpp": "model chunks a stage (interleaved pipeline)",
    "microbatches": "micro-batches a step",
    "steps": "profiled steps",
    "first_step": "number of the first one",
    "ranks_per_host": "ranks of one host",
    "segments": "compute segments of a forward pass",
    "forward_ms": "forward pass of one micro-batch through a stage",
    "tp_mb": "buffer of a tensor-parallel operator",
    "pp_mb": "activations between stages",
    "dp_mb": "gradients of a rank",
    "dp_buckets": "pieces in which gradients are reduced",
    "small_messages": "tiny all-reduces a step",
}
#: Numbers of Healthy that are options.
_VARIATION_NUMBERS = {
    "sequence_sigma": "spread of micro-batches",
    "expert_sigma": "spread of experts' loads",
    "expert_step_sigma": "the same, anew in each step",
    "silicon_sigma": "spread of devices",
    "clock_sigma_ms": "spread of host clocks",
    "drift_ppm": "drift of host clocks",
    "congestion_share": "share of transfers that meet congestion",
    "gc_every": "every rank pauses for garbage collection every so many steps, 0 never",
    "checkpoint_every": "all ranks write a checkpoint every so many steps, 0 never",
    "uneven_counts": "so many ranks lack one operator",
}
_REALISTIC_SEGMENTS = 20


def build_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Write a run directory of a simulated training job with known faults.",
        epilog=f"{SCENARIO_HELP}\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("out", type=named_path, metavar="OUT", help="run directory to write; must not exist yet")
    add("--scenario", action="append", default=[], metavar="SCENARIO", help="a fault, see below; repeatable")
    add("--seed", type=int, default=1, help="same seed, same captures (default %(default)s)")
    add("--run", type=int, default=0, metavar="N", help="N-th run on the same machines (default %(default)s)")
    add("--framework", choices=("pt", "ms"), default="pt", help="PyTorch or MindSpore")
    add("--form", choices=("text", "db", "r1"), default="text", help="form of the files")
    dated = (
        "when the files are dated, in seconds since 1970 (default: now); for the same manifest.json each time"
    )
    add("--dated", type=int, metavar="S", help=dated)
    add("-q", "--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the truth as JSON, the same as in the file beside the run")
    add("--version", action="version", version=f"%(prog)s {VERSION}")
    add_print_completion(parser)
    _add_job(parser.add_argument_group("the job"))
    _add_variations(parser.add_argument_group("what varies though nothing is broken"))
    return parser


def spec_of(arguments: argparse.Namespace) -> JobSpec:
    """Return the job that the command line asks for.

    Raises:
        UsageError: a job that cannot be.
    """
    healthy = Healthy(
        stage_work=arguments.stage_work,
        inner_halves=arguments.inner_halves,
        hiccup_share=arguments.hiccup_share,
        missing_records=arguments.missing_records,
        missing_ranks=_numbers(arguments.missing_ranks),
        missing_steps=_numbers(arguments.missing_steps),
        **{name: getattr(arguments, name) for name in _VARIATION_NUMBERS},
    )
    numbers = {name: getattr(arguments, name) for name in _JOB_NUMBERS}
    if arguments.realistic_size:
        numbers["segments"] = _REALISTIC_SEGMENTS
    return JobSpec(
        **numbers,
        p2p=arguments.p2p,
        dp_mode=arguments.dp_mode,
        sequence_parallel=arguments.sequence_parallel,
        wait_fields=arguments.wait_fields,
        detail=arguments.detail,
        declares_groups=not arguments.no_metadata,
        noise=Noise(family=arguments.noise),
        healthy=healthy,
    )


def _add_job(group: argparse._ArgumentGroup) -> None:
    job = JobSpec()
    _add_numbers(group, job, _JOB_NUMBERS)
    add = group.add_argument
    add("--realistic-size", action="store_true", help="some 360 operators a rank and step, as real jobs")
    add("--p2p", choices=get_args(choices.P2pMode), default=job.p2p, help="how stages send")
    add("--dp-mode", choices=get_args(choices.DpMode), default=job.dp_mode, help="how gradients move")
    add("--sequence-parallel", action="store_true", help="gather and scatter instead of all-reduce")


def _add_variations(group: argparse._ArgumentGroup) -> None:
    job = JobSpec()
    add = group.add_argument
    fields = get_args(choices.WaitFields)
    add("--wait-fields", choices=fields, default=job.wait_fields, help="how profilers fill them")
    add("--detail", choices=get_args(choices.Detail), default=job.detail, help="which files there are")
    add("--no-metadata", action="store_true", help="captures do not say their groups")
    families = get_args(choices.NoiseFamily)
    add("--noise", choices=families, default=job.noise.family, help="family of the noise")
    add("--stage-work", type=_weights, default=(), metavar="X,X,…", help="work of each stage, 1 is normal")
    _add_numbers(group, job.healthy, _VARIATION_NUMBERS)
    add("--hiccup-share", type=float, metavar="X", help="share of steps in which a rank pauses (0.004)")
    add(
        "--missing-records", type=float, metavar="X", help="share of operators that files lack (0; ar1: 0.05)"
    )
    add("--inner-halves", action="store_true", help="PCIe between the halves of a host, HCCS inside them")
    add("--missing-ranks", metavar="RANKS", help="ranks without files, like 3,8-15")
    add("--missing-steps", metavar="STEPS", help="steps that the files lack")


def _add_numbers(group: argparse._ArgumentGroup, owner: object, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        default = getattr(owner, name)
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            metavar="N" if isinstance(default, int) else "X",
            help=f"{text} (default %(default)s)",
        )


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(sorted(parse_number_ranges(text))) if text else ()


def _weights(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))
