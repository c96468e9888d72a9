"""Looks without copying: the plan of a host for `--dry-run`, and its health for `--check`."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

from cluster_collect.plan import HostCheck, HostPlan, PlannedFile
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.survey import chosen, profiler_root, survey_host
from cluster_collect.transport import Dialer
from cluster_run.layout import HOST_PROFILER_NAME, PROFILER_TREE_NAME
from cluster_run.manifest import CollectedFile

_NOTHING = "check profiler_root, device_regex, output_dir and --what"


async def plan_host(dialer: Dialer, spec: HostSpec, options: CollectOptions) -> HostPlan:
    """Return what a collection would fetch from one host.

    Raises:
        HostError: it cannot be reached or listed.
    """
    connection = await dialer.dial(spec)
    try:
        survey = await survey_host(connection, spec, options, one_by_one=False)
    finally:
        await connection.close()
    selection = chosen(survey, spec, options.what)
    prefix = f"{PROFILER_TREE_NAME}/{spec.host}/{HOST_PROFILER_NAME}"
    files = tuple(
        PlannedFile(
            os.fsdecode(placed.entry.path), f"{prefix}/{os.fsdecode(placed.target)}", placed.entry.size_bytes
        )
        for placed in selection.files
    )
    skipped = tuple(
        CollectedFile(
            "",
            os.fsdecode(one.entry.path),
            one.entry.size_bytes,
            one.entry.mtime_ns,
            "",
            "skipped",
            one.reason,
        )
        for one in selection.refused
    )
    reason, advice = survey.problem, ""
    if not files:
        reason, advice = f"no profiler data below {profiler_root(spec)}", _NOTHING
    return HostPlan(spec.host, spec.server_id, files, skipped, survey.method(spec), reason, advice)


async def check_host(dialer: Dialer, spec: HostSpec, options: CollectOptions) -> HostCheck:
    """Log in and look around.

    Raises:
        HostError: it cannot be reached or listed.
    """
    began_s = time.monotonic()
    connection = await dialer.dial(spec)
    login_s = time.monotonic() - began_s
    try:
        survey = await survey_host(connection, spec, options, one_by_one=False)
    finally:
        await connection.close()
    files = chosen(survey, spec, options.what).files
    reason, advice = survey.problem, ""
    if not files:
        reason, advice = f"no profiler data below {profiler_root(spec)}", _NOTHING
    return HostCheck(
        host=spec.host,
        server_id=spec.server_id,
        login_s=round(login_s, 3),
        n_files=len(files),
        n_bytes=sum(file.entry.size_bytes for file in files),
        free_bytes=survey.free_bytes,
        clock_offset_ms=survey.clock_offset_ms,
        method=survey.method(spec),
        tools=tuple((name, version) for name, version in asdict(survey.tools).items() if version),
        reason=reason,
        advice=advice,
    )
