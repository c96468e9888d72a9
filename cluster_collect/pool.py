"""Collects from all hosts at once; one host's failure is its own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cluster_collect.plan import HostCheck, HostPlan
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_run.manifest import Manifest


async def collect(
    specs: Sequence[HostSpec],
    run: Path,
    options: CollectOptions,
    rank_table: Path | None,
    watch: ProgressListener,
) -> Manifest:
    """Collect from every host into `run` and return the manifest that was written there last.

    Cancelling it leaves a directory from which the next call goes on.

    Raises:
        ClusterError: a local problem: the directory is locked or cannot be written, or the disk is full.
    """
    raise NotImplementedError


async def plan(
    specs: Sequence[HostSpec], options: CollectOptions, watch: ProgressListener
) -> tuple[HostPlan, ...]:
    """List every host and return what `collect` would fetch, in the order of `specs`; nothing is copied."""
    raise NotImplementedError


async def check(
    specs: Sequence[HostSpec], options: CollectOptions, watch: ProgressListener
) -> tuple[HostCheck, ...]:
    """Log in to every host and report paths, free space, clock offset and tools, in the order of `specs`."""
    raise NotImplementedError
