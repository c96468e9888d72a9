"""What all streams of files from a host have in common: how one is asked for, and what stands at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cluster_collect.entries import Allowance, RemoteEntry
from cluster_collect.faults import HostileDataError, LostConnectionError, NoShellError, StalledError
from cluster_collect.remote.decompress import Sink, unpacking
from cluster_collect.remote.listing import ListingReader, MarkerFilter
from cluster_collect.remote.programs import RemoteProgram
from cluster_collect.spec import Codec, HostSpec
from cluster_collect.transports.protocol import CommandResult, HostConnection, RunningCommand, finish, run
from cluster_collect.wording import last_line, printable


class Commands:
    """Runs programs on a host, one after the other.

    The first runs in `shell`, the host's probe, where that still waits for one: a login shell costs more than
    all the rest, and a server may allow no other session beside it. Each later one is a command of its own.
    """

    def __init__(self, connection: HostConnection, shell: RunningCommand | None = None) -> None:
        self._connection = connection
        self._shell = shell

    async def run(
        self,
        program: RemoteProgram,
        take: Callable[[bytes], object],
        book: Callable[[int], float] = lambda _: 0.0,
        *,
        hold_input: bool = False,
    ) -> CommandResult:
        """Run `program` to its end and give what it says behind its marker to `take`.

        `book` is that of `HostSource`, `hold_input` that of `finish`.

        Raises:
            NoShellError: the host did not run it.
            HostError: the connection broke, or whatever `take` raises.
        """
        noise = MarkerFilter(program.marker)

        def receive(data: bytes) -> float:
            pause_s = book(len(data))
            if answer := noise.feed(data):
                take(answer)
            return pause_s

        shell, self._shell = self._shell, None
        if shell is None:
            result = await run(
                self._connection, program.command, program.stdin, receive, hold_input=hold_input
            )
        else:
            shell.redirect(receive)
            result = await finish(shell, program.follow_up, hold_input=hold_input)
        if not noise.found:
            if shell is not None:
                raise LostConnectionError("the shell on the host ended while it waited for its turn")
            raise not_run(result, noise)
        return result


@dataclass(frozen=True)
class HostSource:
    """Where files come from: what runs programs there, and how the answers are taken.

    `book` is told the size of what arrives and returns the pause that the bandwidth caps ask for, `brought`
    how much of it is content, which alone is progress.
    """

    commands: Commands
    spec: HostSpec
    codec: Codec
    max_entries: int
    book: Callable[[int], float]
    brought: Callable[[int], None]


class Trailer:
    """What follows the content: padding, a marker, the sender's status, and a listing.

    At most `max_padding` bytes may stand before the marker. Of the listing the files in `known` are kept.
    """

    def __init__(
        self, marker: bytes, max_entries: int, max_padding: int, known: Mapping[bytes, RemoteEntry]
    ) -> None:
        self._marker = MarkerFilter(marker)
        self._left_padding = max_padding
        self.listing = ListingReader(Allowance(max_entries), known)

    def feed(self, data: bytes) -> int:
        """Take the next bytes behind the content; return how much of the listing has come with them."""
        if not self._marker.found:
            self._left_padding -= len(data)
        answer = self._marker.feed(data)
        if answer:
            return self.listing.feed(answer)
        if self._left_padding < 0:
            raise HostileDataError("the archive does not end")
        return 0


async def stream_from(
    source: HostSource,
    program: RemoteProgram,
    sink: Sink,
    trailer: Trailer,
    *,
    hold_input: bool = False,
) -> CommandResult:
    """Run `program` and give what it sends, unpacked, to `sink`, until `trailer` is complete.

    Nothing more reaches `sink` once this has ended.
    `hold_input` is that of `finish`.

    Raises:
        HostError: the stream broke, or did not begin.
    """
    unpack = unpacking(source.codec, sink)

    def take(answer: bytes) -> None:
        if not trailer.listing.complete:
            unpack(answer)

    result = await source.commands.run(program, take, source.book, hold_input=hold_input)
    if not trailer.listing.complete and result.exit_status is None:
        raise LostConnectionError("the connection broke in the middle of the transfer")
    return result


def never_started(deadline_s: float) -> StalledError:
    """The login shell took our program, and nothing came of it."""
    return StalledError(
        f"no answer for {deadline_s:g} s while its login shell starts our program",
        "the host hangs, or a start-up file like .bashrc reads input or starts another shell",
    )


def not_run(result: CommandResult, noise: MarkerFilter) -> NoShellError:
    """What was to run our program ended, and said something else."""
    return NoShellError(f"the host did not run our program ({said_instead(result.errors, noise)})")


def said_instead(errors: bytes, noise: MarkerFilter) -> str:
    """Return what a host said that did not run our program, fit for a message."""
    return printable(last_line(errors.strip() or noise.before))
