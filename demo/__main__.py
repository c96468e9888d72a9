"""`make demo`: a job with two known faults, from its profiler data on four SSH hosts to the findings.

Everything is done by the commands a user has: cluster-simulate writes the data of the job, four real
SSH servers on loopback addresses serve it, cluster-collect fetches it, cluster-analyse explains it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster_run.errors import ExitCode
from cluster_run.layout import FINDINGS_NAME, RANK_TABLE_NAME, REPORT_NAME
from demo.hosts import lay_out_hosts, serve
from demo.sshd import SshLab, SshServerError, find_sshd

#: The job: 32 ranks on four hosts; rank 13 computes slowly, and so is the network between ranks 5 and 9.
JOB = ("--tp", "4", "--pp", "2", "--dp", "4", "--ranks-per-host", "8")
FAULTS = ("slow_rank:1.25@13", "slow_link:2@5-9")

#: A directory that holds this file was made by the demo, so the demo may empty it.
MARKER = ".cluster-demo"


@dataclass
class Watch:
    """How long each stage took."""

    stages: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Announce a stage and measure it."""
        print(f"\n── {name}", file=sys.stderr, flush=True)
        begin_s = time.monotonic()
        yield
        self.stages.append((name, time.monotonic() - begin_s))

    def table(self) -> str:
        """Return the stages with their times."""
        lines = [*self.stages, ("in all", sum(seconds for _, seconds in self.stages))]
        return "".join(f"  {name:<42} {seconds:6.1f} s\n" for name, seconds in lines)


class StageError(Exception):
    """A command of the demo did not do its work."""


def main(argv: Sequence[str], sshd: str | None) -> int:
    """Run the demo with the SSH server `sshd` and return 0 when it worked."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--output", type=Path, default=Path("demo-out"), help="default: %(default)s")
    out: Path = parser.parse_args(argv).output
    if sshd is None:
        print(
            "demo: no SSH server (sshd) on this machine, and the demo collects over real SSH.\n"
            "  → install it: apt-get install openssh-server (it need not be started)",
            file=sys.stderr,
        )
        return ExitCode.FAILED
    if out.exists() and any(out.iterdir()) and not (out / MARKER).exists():
        print(f"demo: {out} holds something else\n  → give another directory: --output DIR", file=sys.stderr)
        return ExitCode.FAILED
    try:
        run_demo(out)
    except (StageError, SshServerError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return ExitCode.FAILED
    return ExitCode.DONE


def run_demo(out: Path) -> None:
    """Simulate, serve, collect, analyse; print what came out."""
    watch = Watch()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARKER).touch()
    simulated, run, inventory = out / "simulated", out / "run", out / "hosts.yaml"
    with watch.stage("simulate a job of 32 ranks with two faults"):
        faults = [argument for fault in FAULTS for argument in ("--scenario", fault)]
        command("cluster_simulate", str(simulated), *JOB, *faults)
        hosts = lay_out_hosts(simulated, out / "hosts")
        shutil.copy(simulated / RANK_TABLE_NAME, out / RANK_TABLE_NAME)
    with SshLab((out / "ssh").resolve()) as lab:
        with watch.stage("start an SSH server for each of its hosts"):
            serve(lab, hosts, inventory, out / RANK_TABLE_NAME)
        with watch.stage("collect the profiler data of all hosts"):
            command("cluster_collect", "--inventory", str(inventory), "--output", str(run))
    with watch.stage("analyse"):
        command("cluster_analysis", str(run))
    print("\n" + comparison(simulated, run))
    print(f"Report:  {run}/cluster_analysis_output/{REPORT_NAME}")
    print(f"Data:    {run}")
    print(f"Hosts:   {inventory}\n")
    print(watch.table(), end="", flush=True)


def command(module: str, *arguments: str) -> None:
    """Run one of the project's commands as a user would; its output is shown.

    Raises:
        StageError: it did not end with 0.
    """
    argv = [sys.executable, "-m", module, *arguments]
    name = {
        "cluster_collect": "cluster-collect",
        "cluster_analysis": "cluster-analyse",
        "cluster_simulate": "cluster-simulate",
    }[module]
    print(f"$ {name} {shlex.join(arguments)}", file=sys.stderr, flush=True)
    code = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL).returncode
    if code != ExitCode.DONE:
        raise StageError(f"{name} ended with code {code}")


def comparison(simulated: Path, run: Path) -> str:
    """Return what was broken next to what was found."""
    truth = json.loads((simulated.parent / f"{simulated.name}.truth.json").read_bytes())
    findings = json.loads((run / "cluster_analysis_output" / FINDINGS_NAME).read_bytes())["findings"]
    broken = [_line(fault, fault["links"], fault["cost_ms_per_step"]) for fault in truth["faults"]]
    found = [
        _line(finding, [(link["src"], link["dst"]) for link in finding["links"]], finding["cost_ms_per_step"])
        for finding in findings
        if finding["severity"] != "info"
    ]
    return "Broken:  " + "\n         ".join(broken) + "\nFound:   " + "\n         ".join(found) + "\n"


def _line(fault: dict[str, object], links: Sequence[Sequence[int]], cost_ms: float | None) -> str:
    ends = sorted({tuple(sorted(link)) for link in links})
    ranks = fault["ranks"]
    place = ", ".join(f"ranks {src} and {dst}" for src, dst in ends) if ends else f"rank {_listed(ranks)}"
    cost = "" if cost_ms is None else f", {cost_ms:.1f} ms a step"
    return f"{str(fault['kind']).replace('_', ' ')}: {place}{cost}"


def _listed(ranks: object) -> str:
    return ", ".join(map(str, ranks)) if isinstance(ranks, list) else str(ranks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], find_sshd()))
