"""What sudo says when it refuses, told apart from what programs below it say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from cluster_collect.faults import BecomeError, NoShellError
from cluster_collect.show.context import ssh_command
from cluster_collect.spec import HostSpec
from cluster_collect.transports.become import BecomingConnection
from cluster_collect.transports.protocol import CommandResult, Receive, RemoteFiles
from cluster_run.ids import HostId, ServerId

SPEC = HostSpec(
    HostId("1"), ServerId("s"), address="node1", profiler_root="/p", become="sudo", become_user="trainer"
)


@dataclass
class Host:
    """Answers every command with one result, and keeps what was called."""

    result: CommandResult
    called: list[str] = field(default_factory=list)
    errors: bytes = b""

    async def start(self, command: str, receive: Receive) -> Host:
        self.called.append(command)
        return self

    async def open_files(self) -> RemoteFiles:
        raise AssertionError("the files of the login user")

    def redirect(self, receive: Receive) -> None: ...
    def send(self, data: bytes) -> None: ...
    def end_input(self) -> None: ...

    async def wait(self) -> CommandResult:
        return self.result

    async def close(self) -> None: ...


async def ended(host: Host) -> CommandResult:
    return await (await BecomingConnection(host, SPEC).start("sh -c 'x'", lambda data: 0.0)).wait()


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        (b"sudo: a password is required\n", "sudo asks for a password"),
        (b"sudo: sorry, you must have a tty to run sudo\n", "sudo asks for a terminal"),
        (b"Sorry, user a is not allowed to execute '/bin/sh' as b on node17.\n", "sudo does not allow it"),
        (b"a is not in the sudoers file.\n", "sudo does not allow it"),
        (b"sudo: unknown user trainer\n", "sudo does not know that user"),
        (b"env: 'sudo': No such file or directory\n", "sudo is not installed"),
        (b"sudo: effective uid is not 0, is sudo installed setuid root?\n", "sudo refuses it"),
        (b"sudo: unable to resolve host node17: x\nsudo: a password is required\n", "sudo asks for a pass"),
    ],
)
def test_a_refusal_has_words_of_ours_that_name_no_host(errors: bytes, why: str) -> None:
    with pytest.raises(BecomeError) as raised:
        asyncio.run(ended(Host(CommandResult(1, errors))))
    assert raised.value.message.startswith(why)
    assert "node17" not in raised.value.message + raised.value.advice


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        (0, b"sudo: unable to resolve host node17: Name or service not known\n"),
        (2, b"sudo: unable to resolve host node17: Name or service not known\ntar: ./x: Read error\n"),
        (1, b"find: './sudo: a password is required': Permission denied\n"),
        (1, b""),
    ],
)
def test_what_a_program_below_sudo_says_is_left_to_its_caller(status: int, errors: bytes) -> None:
    result = CommandResult(status, errors)
    assert asyncio.run(ended(Host(result))) == result


def test_every_command_runs_as_the_named_user_and_sftp_is_refused() -> None:
    host = Host(CommandResult(0, b""))
    asyncio.run(ended(host))
    assert host.called == ["env LC_ALL=C sudo -n -H -u trainer sh -c 'x'"]

    async def files() -> RemoteFiles:
        return await BecomingConnection(host, SPEC).open_files()

    with pytest.raises(NoShellError, match="needs a shell"):
        asyncio.run(files())


def test_the_command_to_try_by_hand_calls_sudo_too() -> None:
    assert ssh_command(SPEC) == "ssh node1 sudo -n -H -u trainer true"
