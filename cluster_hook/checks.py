"""Checks options when a job is submitted: later, mistakes would only show after its end."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from cluster_collect.arguments import parse_arguments
from cluster_hook.follow.pipeline import IN_ALLOCATION, FollowOptions, collect_arguments
from cluster_hook.job import ReportedJob, parse_request
from cluster_run.errors import UsageError


def check_follow_options(options: FollowOptions, *, has_nodes: bool) -> None:
    """Check for options that the commands below would refuse.

    Args:
        options: how jobs will be followed.
        has_nodes: whether the hook will have nodes of Slurm to itself, on which it can start Dask.

    Raises:
        UsageError: they would.
    """
    _check_scheduler(options.scheduler, has_nodes=has_nodes)
    if options.dask_interface and options.scheduler != IN_ALLOCATION:
        raise UsageError("--dask-interface is of use with --scheduler srun only")
    _check_collecting(options)


def _check_collecting(options: FollowOptions) -> None:
    """Report the arguments that cluster-collect would refuse, in its own words, without its usage."""
    said, given = io.StringIO(), collect_arguments(options)
    if given == collect_arguments(FollowOptions()):
        return
    try:
        with contextlib.redirect_stderr(said):
            parse_arguments(["--hosts=any", *given])
    except SystemExit:
        raise UsageError(said.getvalue().rpartition(": error: ")[2].strip()) from None


def _check_scheduler(scheduler: str, *, has_nodes: bool) -> None:
    if scheduler == FollowOptions.scheduler or (has_nodes and scheduler == IN_ALLOCATION):
        return
    if scheduler == IN_ALLOCATION:
        raise UsageError("--scheduler srun needs the nodes of a post-job", "use it with slurm-submit")
    # Late: it brings msgspec, and `--help` needs the standard library alone.
    from cluster_analysis.options import check_scheduler  # noqa: PLC0415

    check_scheduler(scheduler, *([IN_ALLOCATION] if has_nodes else []))


def check_profile_dir(profile_dir: str) -> None:
    """Check a directory that becomes a part of the job's comment.

    Raises:
        UsageError: it has an unknown pattern, or a comment cannot hold it.
    """
    if not profile_dir or re.search(r"[,;\s]", profile_dir):
        raise UsageError(
            f"--profile-dir {profile_dir!r}: a job's comment cannot hold this path",
            "blanks, commas and semicolons end it there: give a link to it",
        )
    nobody = ReportedJob("", "", "", "", (), Path("/"), f"profile_dir={profile_dir}")
    parse_request(nobody)
