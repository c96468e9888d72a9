"""What a stream of files leaves behind when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from cluster_collect.remote.host_stream import Commands, HostSource, Trailer, stream_from
from cluster_collect.remote.programs import RemoteProgram
from cluster_collect.spec import HostSpec
from cluster_collect.transports.protocol import CommandResult, HostConnection, Receive, RemoteFiles
from cluster_run.ids import HostId, ServerId

PROGRAM = RemoteProgram(text=b"send", data=b"names", marker=b"MARK")


@dataclass
class EndlessCommand:
    """A command that waits for ever, and whose packets come whether somebody waits or not."""

    receive: Receive | None = None
    given: list[bytes] = field(default_factory=list)
    errors: bytes = b""

    def redirect(self, receive: Receive) -> None:
        self.receive = receive

    def send(self, data: bytes) -> None:
        self.given.append(data)

    def end_input(self) -> None:
        return

    async def wait(self) -> CommandResult:
        await asyncio.Event().wait()
        raise AssertionError("nobody ends it")

    async def close(self) -> None:
        self.receive = None

    def packet(self, data: bytes) -> None:
        if self.receive is not None:
            self.receive(data)


@dataclass
class Connection:
    command: EndlessCommand

    async def start(self, command: str, receive: Receive) -> EndlessCommand:
        self.command.redirect(receive)
        return self.command

    async def open_files(self) -> RemoteFiles:
        raise AssertionError("no files are asked for")

    async def close(self) -> None:
        return


@pytest.mark.parametrize("has_shell", [True, False], ids=["a shell that was waiting", "a command of its own"])
def test_nothing_is_taken_from_a_stream_that_was_cancelled(has_shell: bool) -> None:
    command = EndlessCommand()
    connection: HostConnection = Connection(command)
    source = HostSource(
        Commands(connection, command if has_shell else None),
        HostSpec(HostId("1"), ServerId("s"), profiler_root="/root"),
        "none",
        max_entries=1,
        book=lambda _: 0.0,
        brought=lambda _: None,
    )
    taken: list[bytes] = []

    async def cancelled_in_the_middle() -> None:
        stream = asyncio.ensure_future(
            stream_from(
                source,
                PROGRAM,
                lambda data: taken.append(bytes(data)),
                Trailer(b"END", max_entries=1, max_padding=0, known={}),
            )
        )
        await asyncio.sleep(0)
        command.packet(b"noise MARK\0before")
        stream.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stream
        command.packet(b"after")

    asyncio.run(cancelled_in_the_middle())
    assert command.given == [PROGRAM.follow_up if has_shell else PROGRAM.stdin]
    assert b"before" in b"".join(taken)
    assert b"after" not in b"".join(taken)
