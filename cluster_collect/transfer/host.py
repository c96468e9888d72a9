"""Collects from one host: connect, prepare, list, fetch what is missing, look again, and say how it went."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import gt
from pathlib import Path
from typing import TypeVar

from cluster_collect.entries import group_of
from cluster_collect.faults import DeadlineError, HostError, NoShellError, as_host_error
from cluster_collect.progress_events import ProgressListener
from cluster_collect.remote.hardware import ask_hardware
from cluster_collect.selection.captures import being_parsed
from cluster_collect.selection.collisions import merge_identical
from cluster_collect.selection.select import PlacedFile, Selection, select
from cluster_collect.spec import UNREAD, CollectOptions, HostSpec
from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import FileRefusedError, RunWriter
from cluster_collect.threads import in_thread
from cluster_collect.transfer.outcome import PREPARE_LOG_NAME, OutcomeSoFar, outcome_of
from cluster_collect.transfer.retry import Retries
from cluster_collect.transfer.rounds import Rounds
from cluster_collect.transfer.same_files import SameFiles
from cluster_collect.transfer.survey import Survey, clocks_of, run_prepare, survey_host
from cluster_collect.transfer.verify import samples_of
from cluster_collect.transfer.ways.intake import Intake
from cluster_collect.transports.bounds import HOST_TIME, BandwidthCap, Bounds, HostTime, queueing
from cluster_collect.transports.protocol import Dial, HostConnection
from cluster_collect.watchdog import until
from cluster_collect.wording import format_bytes
from cluster_reduce.form import SCHEMA
from cluster_run.layout import PARSED_MARK_NAME, host_directory
from cluster_run.manifest import CollectedFile, HostOutcome
from cluster_run.ranktable import RankTable

_T = TypeVar("_T")
_GO_ON = "what came is kept: call it again to go on"
#: Those of another version cannot be read any more.
_OUR_COLUMNS = f"{SCHEMA}\n".encode()


@dataclass(frozen=True)
class Shared:
    """What the hosts of one collection have in common."""

    options: CollectOptions
    dial: Dial
    bounds: Bounds
    writer: RunWriter
    journal: Journal
    watch: ProgressListener
    cap: BandwidthCap | None
    same_files: SameFiles
    table: RankTable | None
    end_s: float


async def in_time(work: Awaitable[_T], options: CollectOptions, end_s: float) -> _T:
    """Await the work on one host until its own deadline, or that of all at `end_s` of the monotonic clock.

    Raises:
        DeadlineError: the time is over; `work` has been cancelled.
    """
    taken = HostTime()
    HOST_TIME.set(taken)
    own_s, all_s = options.host_deadline_s, options.deadline_s
    within_own = until(
        work,
        lambda: own_s - taken.own_s,
        f"not finished within the {own_s:g} s of a host",
        f"{_GO_ON}, or give it longer with --host-deadline SECONDS (0: without end)",
    )
    return await until(
        within_own,
        lambda: end_s - time.monotonic(),
        f"not finished within the {all_s:g} s of all hosts",
        f"{_GO_ON}, or give it longer with --deadline SECONDS",
    )


class HostCollection:
    """One host's part of a collection; `run` returns its outcome and raises local errors only."""

    def __init__(self, spec: HostSpec, shared: Shared) -> None:
        self._spec = spec
        self._shared = shared
        self._options = shared.options
        rate = spec.bandwidth_bytes_per_s
        self._caps = [cap for cap in (shared.cap, BandwidthCap(rate) if rate else None) if cap is not None]
        self._prefix = host_directory(Path(), spec.host).as_posix()
        self._intake = Intake(
            spec.host,
            spec.server_id,
            self._prefix,
            writer=shared.writer,
            journal=shared.journal,
            watch=shared.watch,
        )
        self._one_by_one = False
        self._is_prepared = False
        self._so_far = OutcomeSoFar()
        self._present: dict[bytes, CollectedFile] = {}

    async def run(self) -> HostOutcome:
        """Collect, with as many attempts as make sense.

        Raises:
            ClusterError: this machine's disk is full or cannot be written.
        """
        began_s = time.monotonic()
        self._shared.watch.host_started(self._spec.host)
        try:
            await in_time(self._attempts(), self._options, self._shared.end_s)
        except Exception as error:
            self._so_far.error = as_host_error(error)
        finally:
            found = self._so_far
            is_late = isinstance(found.error, DeadlineError)
            self._shared.same_files.ended(
                self._spec.host, found.files, has_all=found.has_all, is_late=is_late
            )
        outcome = await in_thread(self._outcome, time.monotonic() - began_s)
        if outcome.state == "complete":
            self._shared.writer.drop_cuts(self._prefix)
        self._shared.watch.host_finished(outcome)
        return outcome

    def _outcome(self, seconds: float) -> HostOutcome:
        return outcome_of(
            self._spec, self._so_far, self._kept(), seconds, self._options.ranks, self._shared.table
        )

    def _kept(self) -> list[CollectedFile]:
        """Return the files of earlier calls that this one did not ask for, and the host may still have."""
        journal, server_id = self._shared.journal, self._spec.server_id
        asked = {file.source for file in self._so_far.files}
        asked |= {os.fsdecode(one.entry.path) for one in self._so_far.refused}
        listed = [] if self._so_far.survey is None else self._so_far.survey.entries
        others = ((os.fsdecode(entry.path), entry) for entry in listed)
        known = [journal.stored(server_id, source, entry) for source, entry in others if source not in asked]
        unchanged = [file for file in known if file is not None]
        return [*unchanged, *journal.kept(server_id, asked | {file.source for file in unchanged})]

    async def _attempts(self) -> None:
        retries = Retries(self._options, HOST_TIME.get())
        while True:
            before = self._intake.brought
            try:
                return await self._attempt()
            except NoShellError as error:
                if self._one_by_one or self._spec.become:
                    raise
                self._one_by_one = True
                self._shared.watch.noted(self._spec.host, f"{error.message}: copying file by file")
            except HostError as error:
                wait_s = retries.wait_s(error, has_brought=any(map(gt, self._intake.brought, before)))
                if wait_s is None:
                    raise
                self._shared.watch.retrying(self._spec.host, error.message, wait_s)
                await asyncio.sleep(wait_s)

    async def _attempt(self) -> None:
        began_s = time.monotonic()
        connection = await self._shared.dial(self._spec)
        if self._spec.local is None:
            self._shared.watch.noted(self._spec.host, f"logged in within {time.monotonic() - began_s:.1f} s")
        try:
            if self._spec.prepare and not self._is_prepared:
                await self._prepare(connection)
            survey, selection = await self._surveyed(connection)
            self._so_far.survey, self._so_far.refused = survey, selection.refused
            self._shared.watch.noted(self._spec.host, survey.method(self._spec))
            rounds = Rounds(
                connection,
                survey,
                self._spec,
                self._options,
                intake=self._intake,
                so_far=self._so_far,
                caps=self._caps,
                watch=self._shared.watch,
            )
            self._so_far.clocks += await clocks_of(survey)
            if not await self._is_brought_by_another(rounds, selection):
                await self._fetch_missing(rounds, selection)
            if survey.shell is not None:
                # Behind the hosts that wait to be listed: one machine may serve them all.
                with await self._shared.bounds.asking() as turn:
                    self._so_far.hardware = await ask_hardware(rounds.commands)
                    turn.answered()
        finally:
            await connection.close()

    async def _surveyed(self, connection: HostConnection) -> tuple[Survey, Selection]:
        """List and select; wait for captures that are being parsed, as long as the options let it.

        Captures that are not parsed by then are taken as they are: the analysis reports them.
        """
        spec, options, end_s = self._spec, self._options, time.monotonic() + self._options.parsing_deadline_s
        while True:
            survey = await survey_host(
                connection, spec, options, self._shared.bounds, one_by_one=self._one_by_one
            )
            selection = select(survey, spec, options)
            offset_ms = 0.0 if survey.clock is None else survey.clock.offset_ms
            wanted = {group_of(placed.entry.path) for placed in selection.files}
            parsing = being_parsed(survey.entries, wanted, int((time.time() + offset_ms / 1e3) * 1e9))
            if not parsing or time.monotonic() >= end_s:
                return survey, selection
            first, n_more = parsing[0].decode(errors="replace"), len(parsing) - 1
            others = f" and {n_more} more" if n_more else ""
            self._shared.watch.noted(spec.host, f"waiting for {PARSED_MARK_NAME} in {first}{others}")
            if survey.shell is not None:
                await survey.shell.close()
            with queueing():
                await asyncio.sleep(options.parsing_look_s)

    async def _is_brought_by_another(self, rounds: Rounds, selection: Selection) -> bool:
        """Whether another host with the same file system has brought these files, and this one never did."""
        host, same_files = self._spec.host, self._shared.same_files
        if rounds.is_one_by_one:
            return False  # it hashes nothing for us
        if self._shared.journal.knows(self._spec.server_id):
            same_files.bring(host, selection.files, self._here)
            return False

        async def has(files: Sequence[CollectedFile]) -> bool:
            samples = await in_thread(samples_of, self._shared.writer.run, files)
            return bool(samples) and await rounds.has(samples)

        brought = await same_files.brought_by(host, selection.files, self._here, has)
        if brought is None:
            return False
        other, has_all = brought
        self._so_far.same_files_as = other
        if not has_all:
            raise DeadlineError(f"it sees the files of host {other}, which was not finished in time", _GO_ON)
        self._shared.watch.noted(host, f"sees the files of host {other}: fetched once")
        return True

    def _here(self) -> list[CollectedFile]:
        """Return the files that lie here already."""
        return [*self._present.values(), *self._intake.stored.values()]

    async def _prepare(self, connection: HostConnection) -> None:
        problem, printed = await run_prepare(connection, self._spec, self._options)
        self._is_prepared = True
        self._so_far.prepare_problem = problem
        log = f"{self._prefix.rpartition('/')[0]}/{PREPARE_LOG_NAME}"
        try:
            file = self._shared.writer.begin(log)
            file.write(printed)
            file.commit(time.time_ns())
        except FileRefusedError as error:
            self._so_far.prepare_problem = problem or f"its output cannot be kept: {error}"

    async def _fetch_missing(self, rounds: Rounds, selection: Selection) -> None:
        """Fetch what is not here."""
        # After a killed call content is hashed again here: not in the loop, where it would stop the others.
        present, missing = await in_thread(self._divided, selection)
        self._present = present
        for placed in await rounds.differing(selection.files, present):
            del present[placed.entry.path]
            missing.append(placed)
        n_bytes = sum(file.most_bytes - self._intake.cut_bytes(file) for file in missing)
        self._shared.watch.plan_known(self._spec.host, len(missing), n_bytes)
        if missing:
            async with self._shared.bounds.transfer() as slot:
                try:
                    fitting = self._fitting(missing)
                    # How much columns are shows when they come: they ask for room then.
                    n_bytes = 0 if self._options.columns else sum(file.entry.size_bytes for file in fitting)
                    self._intake.budget.promise(n_bytes)
                    await rounds.fetch(fitting, slot)
                finally:
                    self._intake.budget.release()
                    self._intake.drop_held()
                    self._so_far.take(self._intake, present, selection)
        else:
            self._so_far.take(self._intake, present, selection)
        self._so_far.files = merge_identical(
            partial(self._shared.writer.remove, with_empty=True),
            self._so_far.files,
            selection,
        )

    def _fitting(self, missing: Sequence[PlacedFile]) -> list[PlacedFile]:
        """Return the files that could each lie on this disk; one that never could costs only itself."""
        room_bytes = self._shared.writer.room_bytes()
        fitting = [placed for placed in missing if placed.most_bytes <= room_bytes]
        if not fitting:
            return list(missing)  # the disk is full, and the host's outcome says so
        room = f"there is room for {format_bytes(room_bytes)}{self._shared.writer.kept_free}"
        for placed in missing:
            if placed.most_bytes > room_bytes:
                self._intake.refuse(placed, f"its {format_bytes(placed.most_bytes)} do not fit: {room}")
        return fitting

    def _divided(self, selection: Selection) -> tuple[dict[bytes, CollectedFile], list[PlacedFile]]:
        """Tell the files that are already here from those to fetch."""
        present: dict[bytes, CollectedFile] = {}
        missing: list[PlacedFile] = []
        if not self._shared.journal.knows(self._spec.server_id):
            return present, _smallest_first(selection.files)
        for placed in selection.files:
            entry = placed.entry
            source = os.fsdecode(entry.path)
            file = self._shared.journal.stored(
                self._spec.server_id, source, entry, hash_again=self._options.verify
            )
            wants_whole = placed.stays_whole or not self._options.columns
            if file is None or not self._serves(file, wants_whole=wants_whole):
                missing.append(placed)
            else:
                present[entry.path] = file
        lost = {self._intake.path_of(placed) for placed in missing}
        for placed in selection.files:
            # A copy that was merged into another file's goes with it when that one is replaced.
            file = present.get(placed.entry.path)
            if file is not None and file.path != self._intake.path_of(placed) and file.path in lost:
                del present[placed.entry.path]
                missing.append(placed)
        return present, _smallest_first(missing)

    def _serves(self, file: CollectedFile, *, wants_whole: bool) -> bool:
        """Whether a file that is here is what would be fetched."""
        if file.reason == UNREAD or file.reduced_from_bytes is None:
            return file.reason != UNREAD
        return not wants_whole and self._shared.journal.begins_with(file, _OUR_COLUMNS)


def _smallest_first(files: Iterable[PlacedFile]) -> list[PlacedFile]:
    """Over a link that keeps breaking, as many files as possible get through."""
    return sorted(files, key=lambda placed: placed.entry.size_bytes)
