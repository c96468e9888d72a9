"""The options of `cluster-collect --live`, and the one frozen value they become. Imports nothing heavy."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cluster_collect.argument_types import made
from cluster_run.command_line import language_of, named_path, number_above_0, positive_number
from cluster_run.said.chinese import Language
from cluster_tell.formats import FORMATS, WebhookFormat

#: The package that runs on hosts.
PROGRAM = "cluster_collect.live.host"
#: How a capture is asked for; one module in `ways` each.
WayName = Literal["msmonitor", "file", "mindspore", "vllm"]
#: The two lines with which a job is started, so that it can be asked later.
LINES: Mapping[WayName, tuple[str, str]] = {
    "file": (
        "export PROF_CONFIG_PATH=/a/directory/of/this/job",
        "mkdir -p $PROF_CONFIG_PATH    # torch_npu; nothing else changes",
    ),
    "msmonitor": (
        "dynolog --enable-ipc-monitor --certs-dir NO_CERTS &    # once a host",
        "export MSMONITOR_USE_DAEMON=1",
    ),
    "mindspore": (
        'monitor = DynamicProfilerMonitor(cfg_path="/a/directory/of/this/job")    # in the script',
        "monitor.step()    # at the end of each step of your loop",
    ),
    "vllm": (
        'vllm serve … --profiler-config \'{"profiler": "torch", "torch_profiler_dir": "/data/prof",',
        '    "delay_iterations": 5, "max_iterations": 3}\'',
    ),
}
Parse = Literal["host", "job", "never"]
#: A capture of more steps than this is none of a running job.
MOST_STEPS = 50
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class LiveOptions:
    """Options of a capture of a running job. Paths without `Path` are on the hosts.

    `quorum` is how many hosts are enough; None for all. `every_s` is None for a single capture.
    """

    n_steps: int
    via: WayName | None = None
    job: str = ""
    quorum: int | None = None
    zoom: bool = False
    level: str = "Level1"
    warmup: int = 1
    directory: str = ""
    parse: Parse = "host"
    deadline_s: float = 600.0
    port: int | None = None
    certificates: str = ""
    step_log: str = ""
    step_pattern: str = r"(?i)\bstep\b\D{0,3}(\d+)"
    every_s: float | None = None
    keep: int = 48
    webhook_file: Path | None = None
    webhook_format: WebhookFormat = "json"
    prometheus_dir: Path | None = None
    language: Language = "en"


def add_live_options(group: argparse._ArgumentGroup) -> None:
    """Add them to a parser's group."""
    add = group.add_argument
    add(
        "--live",
        type=positive_number,
        metavar="N",
        help="capture N steps of the running job on all hosts first",
    )
    add("--via", choices=get_args(WayName), help="how the job is asked (default: as it was started)")
    add("--job", default="", metavar="WHICH", help="which job: its Slurm number, a process, or its directory")
    add(
        "--require",
        nargs="+",
        default=["all"],
        metavar="WHO",
        help="'all' hosts (the default), or 'quorum N': at least N, and the others are named",
    )
    add("--zoom", action="store_true", help="all ranks at Level0, then the suspects and peers at Level1")
    add(
        "--live-level",
        default=LiveOptions.level,
        metavar="LEVEL",
        help="Level0, Level1 or Level2 (default: %(default)s)",
    )
    add("--live-dir", default="", metavar="DIR", help="where the job writes (default: the profiler root)")
    add(
        "--parse",
        choices=get_args(Parse),
        default=LiveOptions.parse,
        help="what parses: a process of its own on the 'host' (the default), the 'job', or nothing ('never')",
    )
    add(
        "--live-deadline",
        type=number_above_0,
        default=LiveOptions.deadline_s,
        metavar="SECONDS",
        help="longest time until it is parsed",
    )
    add("--msmonitor-port", type=positive_number, metavar="PORT", help="port of dynolog on the hosts (1778)")
    add(
        "--msmonitor-certs", default="", metavar="DIR", help="certificates of its client on this machine: TLS"
    )
    add(
        "--step-log",
        default="",
        metavar="FILE",
        help="training log on the hosts that tells steps (mindspore)",
    )
    add(
        "--step-pattern",
        default=LiveOptions.step_pattern,
        metavar="REGEX",
        help="regular expression whose one group is the step number",
    )
    add("--every", type=_duration_s, metavar="TIME", help="repeat it at this interval: 30m, 2h")
    add(
        "--keep",
        type=positive_number,
        default=LiveOptions.keep,
        metavar="N",
        help="captures that --every keeps (%(default)s)",
    )
    add(
        "--webhook-file",
        type=named_path,
        metavar="FILE",
        help="file with the address of a webhook: it gets a message when a verdict changes",
    )
    add(
        "--webhook-format",
        choices=FORMATS,
        default=LiveOptions.webhook_format,
        metavar="FORMAT",
        help="as in cluster-hook (default: %(default)s)",
    )
    add(
        "--prometheus-dir",
        type=named_path,
        metavar="DIR",
        help="directory of node_exporter's textfile collector",
    )


def live_options(parser: argparse.ArgumentParser, given: argparse.Namespace) -> LiveOptions | None:
    """Return what was given, None without --live; ends the program with code 2 when it cannot be meant."""
    if given.live is None:
        others = ("via", "job", "zoom", "every", "live_dir", "step_log")
        if meant := [f"--{name.replace('_', '-')}" for name in others if getattr(given, name)]:
            parser.error(f"{meant[0]} goes with --live N")
        return None
    if given.live > MOST_STEPS:
        parser.error(
            f"--live {given.live}: more than {MOST_STEPS} steps fill the hosts' disks; take few, and again"
        )
    if given.check:
        parser.error("--check looks at hosts, --live at jobs: --live N --dry-run sends nothing either")
    try:
        if re.compile(given.step_pattern).groups != 1:
            parser.error("--step-pattern needs one group (…), which is the number")
    except re.error as error:
        parser.error(f"--step-pattern: {error}")
    return made(
        LiveOptions,
        given,
        n_steps=given.live,
        quorum=_quorum(parser, given.require),
        level=given.live_level,
        directory=_on_host(parser, "--live-dir", given.live_dir),
        deadline_s=given.live_deadline,
        port=given.msmonitor_port,
        certificates=given.msmonitor_certs,
        step_log=_on_host(parser, "--step-log", given.step_log),
        every_s=given.every,
        language=language_of(given.lang, sys.stderr),
    )


def _quorum(parser: argparse.ArgumentParser, words: Sequence[str]) -> int | None:
    is_quorum = len(words) == 2 and words[0] == "quorum" and words[1].isdecimal() and int(words[1]) > 0
    if not is_quorum and list(words) != ["all"]:
        parser.error("--require is 'all', or 'quorum N' with the number of hosts that are enough")
    return int(words[1]) if is_quorum else None


#: msMonitor splits its settings at `=` and at line ends, and drops what does not fit, silently.
_REFUSED = re.compile(r"[=\n\r\"'\\]")


def _on_host(parser: argparse.ArgumentParser, option: str, path: str) -> str:
    if path and (not path.startswith("/") or _REFUSED.search(path)):
        parser.error(
            f"{option} {path!r}: an absolute path without = quotes or backslashes, or the job would lose it"
        )
    return path.rstrip("/")


def _duration_s(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it like 30m or 2h")
    return float(int(match[1]) * _UNITS_S[match[2]])
