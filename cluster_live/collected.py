"""A capture that is fetched and judged: an inventory's hosts are asked and collected from."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cluster_collect.progress_events import ProgressListener
from cluster_collect.selection.suspects import read_suspects
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.pool import collect
from cluster_live.capture import capture, clean
from cluster_live.fleet import Say, opened_fleet
from cluster_live.options import LiveOptions
from cluster_live.outcome import Captured
from cluster_live.prepare import found, held, made
from cluster_run.errors import ClusterError, ExitCode
from cluster_run.ids import HostId, format_number_ranges
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME
from cluster_run.manifest import Manifest, Origin


class Shown(Protocol):
    """Who shows a collection."""

    @property
    def tracker(self) -> ProgressListener:
        """The sentence about it."""

    def tick(self) -> None:
        """Called a few times a second."""


@dataclass(frozen=True)
class Hosts:
    """Where a capture is made, and how it is collected."""

    specs: Sequence[HostSpec]
    options: CollectOptions
    rank_table: Path | None = None
    origin: Origin | None = None

    @property
    def names(self) -> Mapping[HostId, str]:
        """What people call them."""
        return {spec.host: str(spec.server_id or spec.address) for spec in self.specs}


@dataclass(frozen=True)
class Taken:
    """A capture that was collected into `run`. `zoomed` is that of its suspects, None where there is none."""

    captured: Captured
    manifest: Manifest
    run: Path
    zoomed: Taken | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all hosts are in it, and all of their files came."""
        return not self.captured.lost and all(one.state == "complete" for one in self.manifest.hosts)


async def taken(hosts: Hosts, live: LiveOptions, run: Path, watch: ProgressListener, say: Say) -> Taken:
    """Capture and collect into `run`; with `zoom`, then the suspects and their peers at a higher level, too.

    Raises:
        ClusterError: nothing could be captured, or not enough; the hosts are as they were.
    """
    specs = {spec.host: spec for spec in hosts.specs}
    async with opened_fleet(hosts.specs, hosts.options, live.quorum, say) as fleet:
        prepared = await found(fleet, specs, live)
        await held(prepared)
        await made(prepared)

        async def one(level: str, to: Path, ranks: frozenset[int] | None = None) -> Taken:
            captured = await capture(prepared, live, say, level, ranks)
            manifest = await collect(
                _of_capture(hosts, captured), to, hosts.options, hosts.rank_table, watch, hosts.origin
            )
            return Taken(captured, manifest, to)

        result = await one("Level0" if live.zoom else live.level, run)
        if live.zoom:
            ranks = await asyncio.to_thread(_suspects, run, say)
            if ranks:
                result = replace(
                    result, zoomed=await one(live.level, run.with_name(f"{run.name}-suspects"), ranks)
                )
        if live.every_s is not None and result.is_whole:
            await clean(prepared)  # a watch would fill the hosts' disks
        return result


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


def _suspects(run: Path, say: Say) -> frozenset[int]:
    code, why = judged(run)
    if code not in (ExitCode.DONE, ExitCode.FINDINGS, ExitCode.INCOMPLETE):
        raise ClusterError(f"{run} could not be analysed, so there is nothing to zoom to: {why}")
    suspects = read_suspects(findings_of(run))
    if not suspects.ranks:
        say("nobody is suspected: there is nothing to zoom to")
    else:
        named, peers = format_number_ranges(suspects.named), format_number_ranges(suspects.peers)
        say(f"suspects: {named}; peers to compare with: {peers or 'none'}")
    return suspects.ranks


def findings_of(run: Path) -> Path:
    """Return where the findings of a run directory are."""
    return run / ANALYSIS_OUTPUT_NAME / FINDINGS_NAME


def judged(run: Path, *, is_told: bool = False) -> tuple[ExitCode, str]:
    """Run cluster-analyse on what was collected; return its exit code, and the last line of what went wrong.

    `is_told` lets it say its findings on our own output.
    """
    command = [sys.executable, "-m", "cluster_analysis", str(run)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(  # noqa: S603 - our own command
        command,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=None if is_told else subprocess.DEVNULL,
        stderr=None if is_told else subprocess.PIPE,
    )
    last = (done.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
    try:
        return ExitCode(done.returncode), "".join(last)
    except ValueError:
        return ExitCode.FAILED, "".join(last)
