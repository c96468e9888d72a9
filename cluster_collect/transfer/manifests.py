"""The manifest of a collection: the last one, and interim ones while some hosts are not finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.store.addresses import without_addresses
from cluster_collect.store.journal import Journal
from cluster_collect.store.run_files import finish_run
from cluster_collect.transports.dialers import Dialers
from cluster_run.ids import HostId, host_number
from cluster_run.manifest import CollectedFile, FileList, HostOutcome, HostState, Manifest, Origin
from cluster_run.version import VERSION

_LOOK_S = 1.0


@dataclass(frozen=True)
class Manifests:
    """What the manifests of one collection have in common. `hosts` are all that the run directory knows."""

    specs: Sequence[HostSpec]
    options: CollectOptions
    run: Path
    journal: Journal
    dialers: Dialers
    hosts: frozenset[HostId]
    origin: Origin | None

    def for_caller(self, outcomes: Sequence[HostOutcome]) -> Manifest:
        """Return what the caller is given: it names addresses, unless `hide_addresses` is set."""
        options, journal = self.options, self.journal
        manifest = Manifest(
            what=options.what if options.ranks is None else journal.what or options.what,
            hosts=_with_earlier(outcomes, journal, self.hosts),
            tool_version=VERSION,
            finished_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            origin=self.origin,
        )
        return self._discreet(manifest) if options.hide_addresses else manifest

    async def write(self, manifest: Manifest) -> None:
        """Write it into the run directory, without addresses, when all files are durable.

        Where some ranks only were asked for, it still says what all of the directory holds.
        """
        written = self._discreet(manifest)
        if self.options.ranks is not None:
            hosts = tuple(with_all_ranks(outcome, self.journal) for outcome in written.hosts)
            written = replace(written, hosts=hosts)
        await asyncio.to_thread(finish_run, self.run, written)

    @asynccontextmanager
    async def while_waiting(self, ended: Mapping[HostId, HostOutcome]) -> AsyncIterator[None]:
        """Write one whenever no more host has `ended` for some time: what is there can be analysed then."""
        over = asyncio.Event()
        writing = asyncio.ensure_future(self._write_periodically(ended, over))
        try:
            yield
        finally:
            over.set()
            await writing  # not cancelled: its thread would go on, and write behind the last one

    async def _write_periodically(self, ended: Mapping[HostId, HostOutcome], over: asyncio.Event) -> None:
        n_written = n_seen = 0
        since_s = time.monotonic()
        is_over = asyncio.ensure_future(over.wait())
        while not over.is_set():
            await asyncio.wait((is_over,), timeout=min(_LOOK_S, self.options.interim_s))
            if len(ended) != n_seen:
                n_seen, since_s = len(ended), time.monotonic()
            elif n_seen != n_written and time.monotonic() - since_s >= self.options.interim_s:
                outcomes = [ended.get(spec.host) or self._unfinished(spec) for spec in self.specs]
                await self.write(self.for_caller(outcomes))
                n_written = n_seen

    def _unfinished(self, spec: HostSpec) -> HostOutcome:
        """Return the outcome so far of a host that is still being collected."""
        known = self.journal.earlier.get(spec.server_id) or HostOutcome(spec.host, spec.server_id, "failed")
        state: HostState = "partial" if known.files.n_stored else "failed"
        reason, advice = "still being collected when this was written", "call it again to go on"
        return replace(known, state=state, reason=reason, failure="unfinished", advice=advice)

    def _discreet(self, manifest: Manifest) -> Manifest:
        of_host = {spec.host: spec for spec in self.specs}
        hosts = tuple(
            without_addresses(outcome, spec, self.dialers.names(spec))
            if (spec := of_host.get(outcome.host)) is not None
            else outcome
            for outcome in manifest.hosts
        )
        return replace(manifest, hosts=hosts)


def _with_earlier(
    outcomes: Sequence[HostOutcome], journal: Journal, hosts: frozenset[HostId]
) -> tuple[HostOutcome, ...]:
    """This call's outcomes and those of hosts that only earlier calls collected, by number."""
    collected = {outcome.server_id for outcome in outcomes}
    earlier = [
        outcome
        for server_id, outcome in journal.earlier.items()
        if server_id not in collected and outcome.host in hosts
    ]
    return tuple(sorted([*outcomes, *earlier], key=lambda outcome: host_number(outcome.host)))


def with_all_ranks(outcome: HostOutcome, journal: Journal) -> HostOutcome:
    """Return how the call before left the host, with the files that are there now.

    A file that could not be fetched in another form is still there in the form that it had. A host without
    earlier files has its outcome of this call.
    """
    earlier = journal.earlier.get(outcome.server_id)
    if earlier is None or earlier.state == "failed":
        return outcome
    there = {file.source for file in journal.kept(outcome.server_id, ())}
    before = {file.source: file for file in earlier.files}

    def as_it_is(file: CollectedFile) -> CollectedFile:
        return before.get(file.source, file) if file.state == "failed" and file.source in there else file

    asked = {file.source for file in outcome.files}
    others = [file for file in earlier.files if file.source not in asked and file.state != "stored"]
    return replace(earlier, files=FileList([*map(as_it_is, outcome.files), *others]))
