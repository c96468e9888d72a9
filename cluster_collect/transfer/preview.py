"""Looks without copying, for `--dry-run` and `--check`: logs in, lists, and says what would be fetched."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

from cluster_collect.remote.clock import best
from cluster_collect.remote.reader import reader
from cluster_collect.selection.select import select
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.outcome import not_taken, why_not_all
from cluster_collect.transfer.plan import HostLook, PlannedFile
from cluster_collect.transfer.survey import clocks_of, survey_host
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.protocol import Dial
from cluster_run.layout import host_directory


async def look_at_host(dial: Dial, spec: HostSpec, options: CollectOptions, bounds: Bounds) -> HostLook:
    """Log in and look around.

    Raises:
        HostError: it cannot be reached or listed.
    """
    began_s = time.monotonic()
    connection = await dial(spec)
    login_s = time.monotonic() - began_s
    try:
        survey = await survey_host(connection, spec, options, bounds)
        clock = best(await clocks_of(survey))
    finally:
        await connection.close()
    selection = select(survey, spec, options)
    prefix = host_directory(Path(), spec.host).as_posix()
    files = tuple(
        PlannedFile(
            os.fsdecode(placed.entry.path), f"{prefix}/{os.fsdecode(placed.target)}", placed.most_bytes
        )
        for placed in selection.files
    )
    failure = why_not_all(spec, len(files), selection.refused, survey, may_be_empty=options.ranks is not None)
    method = survey.method(spec)
    return HostLook(
        host=spec.host,
        server_id=spec.server_id,
        files=files,
        skipped=tuple(map(not_taken, selection.refused)),
        method=f"{method}; columns, if it can run {reader().name}" if options.columns else method,
        reason=failure.reason,
        advice=failure.advice,
        failure=failure.word,
        login_s=round(login_s, 3),
        free_bytes=survey.free_bytes,
        clock_offset_ms=None if clock is None else clock.offset_ms,
        clock_uncertainty_ms=None if clock is None else clock.uncertainty_ms,
        tools=tuple((name, version) for name, version in asdict(survey.tools).items() if version),
    )
