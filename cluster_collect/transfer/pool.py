"""Collects from all hosts at once, or looks at them; one host's failure is its own outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import aclosing, closing
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from cluster_collect.faults import as_host_error
from cluster_collect.progress_events import ProgressListener
from cluster_collect.remote.reader import reader
from cluster_collect.selection.select import select
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.store.addresses import hidden
from cluster_collect.store.journal import Journal
from cluster_collect.store.run_files import locked, prepare_run
from cluster_collect.store.writer import RunWriter
from cluster_collect.transfer.host import HostCollection, Shared, in_time
from cluster_collect.transfer.manifests import Manifests
from cluster_collect.transfer.outcome import failure_of, not_taken, summed_up, why_not_all
from cluster_collect.transfer.plan import HostLook, PlannedFile
from cluster_collect.transfer.same_files import SameFiles
from cluster_collect.transfer.survey import clocks_of, survey_host
from cluster_collect.transports.bounds import BandwidthCap, Bounds
from cluster_collect.transports.dialers import Dialers
from cluster_collect.transports.protocol import Dial
from cluster_collect.watchdog import each
from cluster_run.ids import HostId
from cluster_run.layout import host_directory
from cluster_run.manifest import FileList, HostOutcome, Manifest, Origin
from cluster_run.ranktable import read_rank_table

_T = TypeVar("_T")


async def collect(
    specs: Sequence[HostSpec],
    run: Path,
    options: CollectOptions,
    rank_table: Path | None,
    watch: ProgressListener,
    origin: Origin | None = None,
) -> Manifest:
    """Collect from every host into `run`, write the manifest there last, and return it.

    The one that is returned names addresses in reasons and advices, unless `hide_addresses` is set; the one
    in the directory does not. `origin` goes into both. Where some ranks only were asked for, the one in the
    directory still says what all of it holds, and how whole that is.

    Hosts that an earlier call collected and this one does not name stay in the manifest. Cancelling
    leaves a directory from which the next call goes on.

    Raises:
        ClusterError: a local problem: the directory is locked or cannot be written, or the disk is full.
    """
    with locked(run), Journal(run) as journal, closing(RunWriter(run, options.min_free_bytes)) as writer:
        watch.collection_begins(len(specs))
        mapping = prepare_run(run, specs, journal, rank_table)
        writer.remove_leftovers()
        of_host = {spec.host: spec for spec in specs}
        rate = options.bandwidth_bytes_per_s
        async with aclosing(Dialers(options, watch)) as dialers:
            if options.hide_addresses:
                watch.hide(lambda host, text: hidden(text, of_host[host], dialers.names(of_host[host])))
            shared = Shared(
                options=options,
                dial=dialers.dial,
                bounds=dialers.bounds,
                writer=writer,
                journal=journal,
                watch=watch,
                cap=BandwidthCap(rate) if rate else None,
                table=None if rank_table is None else read_rank_table(rank_table),
                same_files=SameFiles(_brought_before(specs, journal)),
                end_s=time.monotonic() + options.deadline_s,
            )
            manifests = Manifests(specs, options, run, journal, dialers, frozenset(mapping.values()), origin)
            ended: dict[HostId, HostOutcome] = {}

            async def one(spec: HostSpec) -> HostOutcome:
                outcome = await HostCollection(spec, shared).run()
                if options.ranks is None:  # else it is asked at the end what else is there
                    journal.forget(spec.server_id)
                ended[spec.host] = outcome
                return outcome

            async with manifests.while_waiting(ended):
                outcomes = await each(one, specs, len(specs))
            manifest = manifests.for_caller(outcomes)
            await manifests.write(manifest)
        journal.finished()
        return manifest


async def look(
    specs: Sequence[HostSpec], options: CollectOptions, watch: ProgressListener
) -> tuple[HostLook, ...]:
    """Log in to every host and return what `collect` would fetch, in the order of `specs`.

    Nothing is copied. Where a host cannot be looked at, its answer is the reason.
    """
    end_s = time.monotonic() + options.deadline_s
    async with aclosing(Dialers(options, watch)) as dialers:

        async def one(spec: HostSpec) -> HostLook:
            watch.host_started(spec.host)
            try:
                looking = look_at_host(dialers.dial, spec, options, dialers.bounds)
                found = await in_time(looking, options, end_s)
            except Exception as error:
                found = HostLook(summed_up(spec, failure_of(as_host_error(error)), FileList()))
            watch.host_finished(found.outcome)
            return found

        return tuple(await each(one, specs, len(specs)))


def _brought_before(specs: Sequence[HostSpec], journal: Journal) -> dict[HostId, HostId]:
    """Return the hosts whose files another host of this call brought in an earlier one, and that host."""
    asked = {spec.host for spec in specs}
    brought = {
        outcome.host: HostId(outcome.same_files_as)
        for outcome in journal.earlier.values()
        if outcome.host in asked and outcome.same_files_as in asked
    }
    return {host: other for host, other in brought.items() if other not in brought}


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
        clocks = await clocks_of(survey)
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
        summed_up(spec, failure, FileList(map(not_taken, selection.refused)), clocks),
        files,
        method=f"{method}; columns, if it can run {reader().name}" if options.columns else method,
        login_s=round(login_s, 3),
        free_bytes=survey.free_bytes,
        tools=tuple((name, version) for name, version in asdict(survey.tools).items() if version),
    )
