"""Looks without copying: the plan of a host for `--dry-run`, and its health for `--check`."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace

from cluster_collect.faults import NoShellError
from cluster_collect.remote.clock import best
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.outcome import not_taken, why_not_all
from cluster_collect.transfer.plan import HostCheck, HostPlan, PlannedFile
from cluster_collect.transfer.survey import Survey, chosen, clocks_of, survey_host
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.protocol import Dialer
from cluster_run.layout import HOST_PROFILER_NAME, PROFILER_TREE_NAME


async def plan_host(dialer: Dialer, spec: HostSpec, options: CollectOptions, bounds: Bounds) -> HostPlan:
    """Return what a collection would fetch from one host.

    Raises:
        HostError: it cannot be reached or listed.
    """
    survey, _ = await _look(dialer, spec, options, bounds)
    selection = chosen(survey, spec, options)
    prefix = f"{PROFILER_TREE_NAME}/{spec.host}/{HOST_PROFILER_NAME}"
    files = tuple(
        PlannedFile(
            os.fsdecode(placed.entry.path), f"{prefix}/{os.fsdecode(placed.target)}", placed.most_bytes
        )
        for placed in selection.files
    )
    skipped = tuple(map(not_taken, selection.refused))
    failure = why_not_all(spec, len(files), selection.refused, survey, may_be_empty=options.ranks is not None)
    return HostPlan(
        host=spec.host,
        server_id=spec.server_id,
        files=files,
        skipped=skipped,
        method=_method(survey, spec, options),
        reason=failure.reason,
        advice=failure.advice,
        failure=failure.word,
    )


async def check_host(dialer: Dialer, spec: HostSpec, options: CollectOptions, bounds: Bounds) -> HostCheck:
    """Log in and look around.

    Raises:
        HostError: it cannot be reached or listed.
    """
    survey, login_s = await _look(dialer, spec, options, bounds)
    selection = chosen(survey, spec, options)
    files, clock = selection.files, survey.clock
    failure = why_not_all(spec, len(files), selection.refused, survey, may_be_empty=options.ranks is not None)
    return HostCheck(
        host=spec.host,
        server_id=spec.server_id,
        login_s=round(login_s, 3),
        n_files=len(files),
        n_bytes=sum(file.most_bytes for file in files),
        free_bytes=survey.free_bytes,
        clock_offset_ms=None if clock is None else clock.offset_ms,
        clock_uncertainty_ms=None if clock is None else clock.uncertainty_ms,
        method=_method(survey, spec, options),
        tools=tuple((name, version) for name, version in asdict(survey.tools).items() if version),
        reason=failure.reason,
        advice=failure.advice,
        failure=failure.word,
    )


def _method(survey: Survey, spec: HostSpec, options: CollectOptions) -> str:
    """Say how the files would travel, and what would run on the host."""
    method = survey.method(spec)
    if not options.columns:
        return method
    from cluster_collect.remote.reader import reader  # noqa: PLC0415 - brings what only columns need

    return f"{method}; columns, if it can run {reader().name}"


async def _look(
    dialer: Dialer, spec: HostSpec, options: CollectOptions, bounds: Bounds
) -> tuple[Survey, float]:
    """List one host, over SFTP where it has no shell; return the listing and the seconds of the login."""
    for one_by_one in (False, True):
        began_s = time.monotonic()
        connection = await dialer.dial(spec)
        login_s = time.monotonic() - began_s
        try:
            survey = await survey_host(connection, spec, options, bounds, one_by_one=one_by_one)
            return replace(survey, clock=best(await clocks_of(survey))), login_s
        except NoShellError:
            if one_by_one or spec.become:
                raise
        finally:
            await connection.close()
    raise AssertionError("unreachable: the second attempt returns or raises")
