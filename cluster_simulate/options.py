"""The options of cluster-simulate; every default is the one of the job spec."""

from __future__ import annotations

import argparse
from typing import get_args

from cluster_run.command_line import Parser, add_about, named_path
from cluster_run.ids import parse_number_ranges
from cluster_simulate.job import spec as choices
from cluster_simulate.job.spec import Healthy, JobSpec, Noise

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
    "ranks_per_host": "ranks of one host",
    "segments": "compute segments of a forward pass",
    "forward_ms": "forward pass of one micro-batch through a stage",
    "dp_buckets": "pieces in which gradients are reduced",
}
#: Numbers of Healthy that are options.
_VARIATION_NUMBERS = {"sequence_sigma": "spread of micro-batches", "expert_sigma": "spread of experts' loads"}


def build_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(
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
    add("--framework", choices=get_args(choices.Framework), default="pt", help="PyTorch or MindSpore")
    add("--form", choices=get_args(choices.Form), default="text", help="form of the files")
    dated = (
        "when the files are dated, in seconds since 1970 (default: now); for the same manifest.json each time"
    )
    add("--dated", type=int, metavar="S", help=dated)
    add("-q", "--quiet", action="store_true", help="print nothing")
    add("--json", action="store_true", help="print the truth as JSON, the same as in the file beside the run")
    add_about(parser)
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
        missing_records=arguments.missing_records,
        missing_ranks=_numbers(arguments.missing_ranks),
        missing_steps=_numbers(arguments.missing_steps),
        **{name: getattr(arguments, name) for name in _VARIATION_NUMBERS},
    )
    return JobSpec(
        **{name: getattr(arguments, name) for name in _JOB_NUMBERS},
        p2p=arguments.p2p,
        dp_mode=arguments.dp_mode,
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
    add("--p2p", choices=get_args(choices.P2pMode), default=job.p2p, help="how stages send")
    add("--dp-mode", choices=get_args(choices.DpMode), default=job.dp_mode, help="how gradients move")


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
    add(
        "--missing-records", type=float, metavar="X", help="share of operators that files lack (0; ar1: 0.05)"
    )
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


SCENARIO_HELP = """\
A scenario is KIND:SEVERITY@PLACE,KEY=VALUE,...; severity, place and keys may be left out.
Without a place the simulator draws one. Several scenarios make a job with several faults.

  slow_rank:1.25@5            rank 5 computes 1.25 times as long
  slow_rank:1.05@5,cause=dispatch   rank 5 idles 5 % of a step more (cause=input: starts late by that)
  slow_rank:1.3@5,op=vector   only its vector operators (or op=cube)
  slow_rank:1.3@5,pattern=intermittent,duty=0.3   in 3 of 10 steps (pattern=trend: grows; transient: one)
  slow_host:1.05@2            host 2 (counted from 1) idles 5 % of a step more; cause=dispatch|input|compute
  slow_link:2@7-11            the link between ranks 7 and 11 takes twice as long; dir=one: only 7 to 11
  slow_nic:3@5                all RDMA of rank 5; dir=tx|rx: one way; via=hccs: its links inside the host
  slow_host_pair:2@1-2        all RDMA between hosts 1 and 2
  slow_uplink:2@1             all RDMA of host 1 (of hosts 1 and 3: @1+3)
  retransmission:4000@7-11    one operator over that link lasts 4000 ms more, once
  periodic_pause:80@5,every=2 rank 5 pauses 80 ms every 2 steps (@all: every rank)
  stage_imbalance:1.4         the last stage has 1.4 times the work
  data_imbalance:0.2          micro-batches differ by sigma 0.2
  expert_imbalance:0.2        experts' loads differ by sigma 0.2 (needs --ep)
  small_packets:400           gradients are reduced in 400 pieces
  input_bound:80              every rank waits about 80 ms for its data at each step
  host_bound:0.35             every rank idles 0.35 of its computing time between operators
"""
