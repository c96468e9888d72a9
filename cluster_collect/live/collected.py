"""A capture that is fetched and judged: an inventory's hosts are asked and collected from."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_collect.live.capture import capture, remove_captures
from cluster_collect.live.collectives import elsewhere
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import Captured
from cluster_collect.live.prepare import Prepared, found, held, made
from cluster_collect.live.sessions import Say, names_of, opened_sessions
from cluster_collect.live.ways.protocol import ranks_of
from cluster_collect.progress_events import ProgressListener
from cluster_collect.selection.suspects import read_suspects
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.pool import collect
from cluster_run.errors import ClusterError, ExitCode
from cluster_run.ids import HostId, format_number_ranges
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME
from cluster_run.manifest import Manifest, Origin
from cluster_run.said.chinese import Language

#: What the name of a run directory ends in that holds the suspects of another one at a higher level.
SUSPECTS_SUFFIX = "-suspects"


@dataclass(frozen=True)
class Hosts:
    """Where a capture is made, and how it is collected."""

    specs: Sequence[HostSpec]
    options: CollectOptions
    rank_table: Path | None = None
    origin: Origin | None = None

    @property
    def names(self) -> Mapping[HostId, str]:
        """Their names for people."""
        return names_of(self.specs)


@dataclass(frozen=True)
class Taken:
    """A capture that was collected into `run`. `zoomed` is that of its suspects, None where there is none.

    `ranks` are those that may be compared, in the form of `cluster-analyse --ranks`; empty for all.
    """

    captured: Captured
    manifest: Manifest
    run: Path
    ranks: str = ""
    zoomed: Taken | None = None

    @property
    def partial(self) -> frozenset[HostId]:
        """The hosts that are not in it, or not all of whose files came; also of `zoomed`."""
        cut = frozenset(one.host for one in self.manifest.hosts if one.state != "complete")
        return cut.union(self.captured.lost, self.zoomed.partial if self.zoomed else ())


async def taken(
    hosts: Hosts,
    live: LiveOptions,
    run: Path,
    watch: ProgressListener,
    say: Say,
    spent: Callable[[float], None] = lambda _: None,
) -> Taken:
    """Capture and collect into `run`; with `zoom`, then the suspects and their peers at a higher level, too.

    `spent` is called with the seconds that the job ran captured, once a capture, also where that then fails.

    Raises:
        ClusterError: nothing could be captured, or not enough; the hosts are as they were.
    """
    specs = {spec.host: spec for spec in hosts.specs}
    async with opened_sessions(hosts.specs, hosts.options, live.quorum, say) as sessions:
        prepared = await found(sessions, specs, live)
        prepared.spent = spent
        await held(prepared)
        await made(prepared)

        async def one(level: str, to: Path, ranks: frozenset[int] | None = None) -> Taken:
            captured = await capture(prepared, live, say, level, ranks)
            manifest = await collect(
                _of_capture(hosts, captured), to, hosts.options, hosts.rank_table, watch, hosts.origin
            )
            return await _compared(prepared, Taken(captured, manifest, to), level)

        result = await one("Level0" if live.zoom else live.level, run)
        if live.zoom:
            ranks = await asyncio.to_thread(_suspects, result, say)
            if ranks:
                result = replace(
                    result, zoomed=await one(live.level, run.with_name(f"{run.name}{SUSPECTS_SUFFIX}"), ranks)
                )
        if live.every_s is not None:
            await remove_captures(prepared, result.partial)  # a watch would fill the hosts' disks
        return result


async def _compared(prepared: Prepared, result: Taken, level: str) -> Taken:
    """Look whether the hosts' collectives are those of the same iterations; others are lost.

    Raises:
        NotCapturedError: too few hosts are left; the files of all are kept.
    """
    sessions, captured = prepared.sessions, result.captured
    if level == "Level0" or not all(prepared.ways[host].has_steps for host in captured.hosts):
        return result
    lost, notes = await asyncio.to_thread(elsewhere, result.run, result.manifest.hosts, captured.step_s)
    for host, why in lost.items():
        sessions.lose(host, why)
    sessions.require()
    left = tuple(host for host in captured.hosts if host not in lost)
    ranks = {rank for host in left for rank in ranks_of(prepared.targets[host], None)}
    captured = replace(captured, hosts=left, lost={**captured.lost, **lost}, notes=(*captured.notes, *notes))
    return replace(result, captured=captured, ranks=format_number_ranges(ranks) if lost else "")


def _of_capture(hosts: Hosts, captured: Captured) -> tuple[HostSpec, ...]:
    """Return the inventory that brings this capture and nothing else."""
    where = captured.directories
    return tuple(
        replace(
            spec,
            profiler_root=where[spec.host],
            local=where[spec.host] if spec.local else None,
            captures=captured.captures[spec.host],
        )
        for spec in hosts.specs
        if spec.host in where
    )


def _suspects(result: Taken, say: Say) -> frozenset[int]:
    run = result.run
    code, why = analysed(result)
    if code not in (ExitCode.DONE, ExitCode.FINDINGS, ExitCode.INCOMPLETE):
        raise ClusterError(f"{run} could not be analysed, so there is nothing to zoom to: {why}")
    suspects = read_suspects(findings_of(run))
    if not suspects.ranks:
        say("no rank is suspected: there is nothing to zoom to")
    else:
        named, peers = format_number_ranges(suspects.named), format_number_ranges(suspects.peers)
        say(f"suspects: {named}; peers to compare with: {peers or 'none'}")
    return suspects.ranks


def findings_of(run: Path) -> Path:
    """Return where the findings of a run directory are."""
    return run / ANALYSIS_OUTPUT_NAME / FINDINGS_NAME


def analysed(result: Taken, shown_in: Language | None = None) -> tuple[ExitCode, str]:
    """Run cluster-analyse on the collected data; return its exit code, and the last line of its error.

    With a language it says its findings on our own output.
    """
    command = [sys.executable, "-m", "cluster_analysis", str(result.run)]
    command += ["--ranks", result.ranks] if result.ranks else []
    command += ["--lang", shown_in] if shown_in else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(  # noqa: S603 - our own command
        command,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=None if shown_in else subprocess.DEVNULL,
        stderr=None if shown_in else subprocess.PIPE,
    )
    last = (done.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
    try:
        return ExitCode(done.returncode), "".join(last)
    except ValueError:
        return ExitCode.FAILED, "".join(last)
