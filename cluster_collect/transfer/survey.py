"""Finds out what one host has and how its files can travel: the part that collect, plan and check share."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cluster_collect.entries import Allowance, RemoteEntry, is_capture
from cluster_collect.faults import LostConnectionError, NoFilesError, NoShellError, StalledError
from cluster_collect.remote.clock import ClockOffset, ask_clock, offset_of
from cluster_collect.remote.host_stream import never_started, said_instead
from cluster_collect.remote.listing import ListingReader, MarkerFilter, Tools
from cluster_collect.remote.programs import prepare_program, probe_program
from cluster_collect.selection.select import Tree
from cluster_collect.spec import Codec, CollectOptions, HostSpec
from cluster_collect.transfer.ways.walker import Walked, walk
from cluster_collect.transports.asking import Turn
from cluster_collect.transports.bounds import Bounds, queueing
from cluster_collect.transports.protocol import HostConnection, RemoteFiles, RunningCommand, run
from cluster_collect.watchdog import Watchdog, cancelled
from cluster_collect.wording import last_line, printable

_MAX_PREPARE_OUTPUT_BYTES = 1 << 20
#: One name in some seconds: a busy file server finds a thousand in one.
_LEAST_LISTING_BYTES_PER_S = 50.0


@dataclass(frozen=True)
class Survey(Tree):
    """One host's answer: what it lists, and more.

    `codec` is None where files travel one by one, `problem` empty when all was read; `is_denied` where the
    login may not read some of it.

    `shell` still runs and takes one more program; it ends with the connection.
    """

    codec: Codec | None = None
    tools: Tools = field(default_factory=Tools)
    clock: ClockOffset | None = None
    free_bytes: int | None = None
    problem: str = ""
    is_denied: bool = False
    shell: RunningCommand | None = field(default=None, repr=False, compare=False)

    @property
    def inside(self) -> str:
        """The capture that the root lies inside of; empty where it lies in none."""
        parts = self.real_root.split(b"/")
        for depth in range(1, len(parts)):
            if is_capture(parts[depth - 1]):
                return printable(b"/".join(parts[:depth]).decode(errors="replace"))
        return ""

    @property
    def top_names(self) -> tuple[str, ...]:
        """The names in the root, in order."""
        names = {entry.path.partition(b"/")[0] for entry in self.entries}
        return tuple(printable(name.decode(errors="replace")) for name in sorted(names))

    def method(self, spec: HostSpec) -> str:
        """Say how the files would travel."""
        if self.codec is None:
            return "local copy" if spec.local is not None else "sftp"
        return "tar" if self.codec == "none" else f"tar+{self.codec}"


async def survey_host(
    connection: HostConnection,
    spec: HostSpec,
    options: CollectOptions,
    bounds: Bounds,
    *,
    one_by_one: bool = False,
) -> Survey:
    """Ask a host for its tools, clock and files; over SFTP where it runs no commands or `one_by_one` is set.

    Raises:
        HostError: it did not answer, or has no profiler root.
    """
    no_shell = "the host is to be read file by file"
    if not (one_by_one or spec.local is not None):
        try:
            with await bounds.asking() as turn:
                return await _survey_by_shell(connection, spec, options, turn)
        except NoShellError as error:
            if spec.become:  # what the login user may read is not what was asked for
                raise
            no_shell = error.message
    try:
        return await survey_by_files(connection, spec, options)
    except NoFilesError as error:
        raise NoFilesError(f"{no_shell}, and it offers no SFTP", error.advice) from None


async def _survey_by_shell(
    connection: HostConnection, spec: HostSpec, options: CollectOptions, turn: Turn
) -> Survey:
    program = probe_program(spec)
    noise = MarkerFilter(program.marker)
    listing = ListingReader(Allowance(options.max_entries_per_host))
    watchdog = Watchdog(
        options.listing_deadline_s,
        turn.patience_s,
        turn.give_back,
        least_bytes_per_s=_LEAST_LISTING_BYTES_PER_S,
    )
    listed = asyncio.Event()
    arrived_s: list[float] = []
    sent_s = time.time()

    def receive(data: bytes) -> float:
        answer = noise.feed(data)
        if noise.found and not arrived_s:
            arrived_s.append(time.time())
            turn.answered()
            watchdog.progress()
        if answer:
            watchdog.received(listing.feed(answer))
        if listing.complete:
            listed.set()
        return 0.0

    async def probed() -> RunningCommand:
        shell = await connection.start(program.command, receive)
        shell.send(program.stdin)
        ended = asyncio.ensure_future(shell.wait())
        reported = asyncio.ensure_future(listed.wait())
        try:
            await asyncio.wait((ended, reported), return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                ended.result()
        finally:
            await cancelled(reported)
            await cancelled(ended)
        return shell

    try:
        shell = await watchdog.guard(probed(), "listing its profiler data")
    except StalledError:
        if noise.found:
            raise
        raise never_started(options.listing_deadline_s) from None
    if not noise.found:
        raise NoShellError(f"the host runs no commands for us ({said_instead(shell.errors, noise)})")
    tools = _require_listing(listing, spec)
    denied = _denied(listing.complaints) if listing.find_status else []
    clock = None if listing.clock_s is None else offset_of(listing.clock_s, sent_s, arrived_s[0])
    return Survey(
        entries=listing.entries,
        clock_ahead_s=0.0 if clock is None else clock.offset_ms / 1000,
        codec=tools.codec(options.compression),
        tools=tools,
        clock=clock,
        free_bytes=listing.free_bytes,
        problem=_unlisted(listing.complaints, denied) if listing.find_status else "",
        is_denied=bool(denied),
        shell=shell,
        links=listing.links,
        real_root=listing.real_root,
    )


def _denied(errors: bytes) -> list[str]:
    """Return what find says, in the language of programs, of directories that it may not read."""
    lines = errors.decode(errors="replace").splitlines()
    return [line for line in lines if line.endswith("Permission denied")]


def _unlisted(errors: bytes, denied: Sequence[str]) -> str:
    """Say what find could not list: the first directory that it names, and how many more."""
    said = printable(denied[0] if denied else last_line(errors)).removeprefix("find: ")[:300]
    others = f" ({len(denied) - 1} more)" if len(denied) > 1 else ""
    return f"not everything could be listed: {said}{others}"


async def clocks_of(survey: Survey) -> list[ClockOffset]:
    """Return the host's clock by the listing, and by its shell when that is asked again."""
    reported = [] if survey.clock is None else [survey.clock]
    return reported if survey.shell is None else reported + await ask_clock(survey.shell)


def _require_listing(listing: ListingReader, spec: HostSpec) -> Tools:
    """Return the host's tools; raise a HostError where its answer is no whole listing."""
    listing.require_root(spec.root)
    if not listing.tools.are_gnu:
        raise NoShellError("find or tar on the host is not GNU's")
    if not listing.complete:
        raise LostConnectionError("the connection broke while the host listed its files")
    return listing.tools


async def survey_by_files(connection: HostConnection, spec: HostSpec, options: CollectOptions) -> Survey:
    """List a host's files without a shell."""
    watchdog = Watchdog(options.listing_deadline_s, least_bytes_per_s=_LEAST_LISTING_BYTES_PER_S)
    walked = Walked(spec.follow_links, spec.pattern)

    async def listed() -> list[RemoteEntry]:
        files: RemoteFiles = await connection.open_files()
        try:
            root = os.fsencode(spec.root)
            allowance = Allowance(options.max_entries_per_host)
            return await walk(files, root, allowance, walked, watchdog.received)
        finally:
            await files.close()

    entries = await watchdog.guard(listed(), "listing its profiler data")
    problem = ""
    if walked.unreadable:
        first = walked.unreadable[0].decode(errors="replace")
        problem = f"{len(walked.unreadable)} directories could not be listed, the first is {first}"
    return Survey(entries, walked.links, walked.root, problem=problem)


async def run_prepare(
    connection: HostConnection, spec: HostSpec, options: CollectOptions
) -> tuple[str, bytes]:
    """Run the host's `prepare` command; return what went wrong (empty: nothing) and what it printed.

    At most the last MiB of the output is kept.
    """
    program = prepare_program(spec.prepare or "")
    noise = MarkerFilter(program.marker)
    output = bytearray()

    def receive(data: bytes) -> float:
        output.extend(noise.feed(data))
        if len(output) > 2 * _MAX_PREPARE_OUTPUT_BYTES:
            del output[:-_MAX_PREPARE_OUTPUT_BYTES]
        return 0.0

    watchdog = Watchdog(options.prepare_deadline_s)
    with queueing():  # a command of the user's, with a deadline of its own
        result = await watchdog.guard(
            run(connection, program.command, program.stdin, receive), "running its prepare command"
        )
    printed = bytes(output[-_MAX_PREPARE_OUTPUT_BYTES:])
    if not noise.found:
        return "prepare could not be run: the host runs no commands for us", printed
    if result.exit_status != 0:
        status = "was ended" if result.exit_status is None else f"exited with {result.exit_status}"
        return f"prepare {status}: {last_line(printed)}", printed
    return "", printed
