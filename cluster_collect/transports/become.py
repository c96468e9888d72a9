"""Commands that run as another user of the host, by sudo, over any transport: `become: sudo`.

The whole program of ours runs under one `sudo -n`, as Ansible does it, so that a rule for Ansible is enough.
No password is ever given. SFTP has no such way: files are then read by commands alone.
"""

from __future__ import annotations

import re

from cluster_collect.faults import BecomeError, NoShellError
from cluster_collect.spec import HostSpec
from cluster_collect.transports.protocol import (
    CommandResult,
    HostConnection,
    Receive,
    RemoteFiles,
    RunningCommand,
)

#: What sudo says, and what that means; its own words may hold the host's name. The first that fits counts.
_REFUSALS = tuple(
    (re.compile(pattern, re.MULTILINE), meaning)
    for pattern, meaning in (
        (rb"^sudo: a password is required", "sudo asks for a password"),
        (rb"^sudo: .*(?:have a tty|terminal is required)", "sudo asks for a terminal"),
        (rb"^Sorry, user |^\S+ is not in the sudoers file", "sudo does not allow it to the login user"),
        (rb"^sudo: unknown user", "sudo does not know that user"),
        (rb"^\S*(?:env|sh): .*sudo.*(?:not found|[Nn]o such file)", "sudo is not installed"),
        (rb"^sudo: (?!unable to resolve host)", "sudo refuses it"),
    )
)


class BecomingConnection:
    """A connection whose commands run as the user that the inventory names; a refusal shows at the first."""

    def __init__(self, connection: HostConnection, spec: HostSpec) -> None:
        self._connection = connection
        self._spec = spec

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        """Start a command below sudo."""
        # In English, whatever the host speaks; our own programs set it anyhow.
        words = " ".join(("env", "LC_ALL=C", *self._spec.sudo_words))
        return _Command(await self._connection.start(f"{words} {command}", receive), self._spec)

    async def open_files(self) -> RemoteFiles:
        """SFTP has no sudo."""
        raise NoShellError(
            "with become: sudo the host needs a shell, and GNU find and tar",
            "SFTP reads files as the login user only: leave become out for that",
        )

    async def close(self) -> None:
        """Close it."""
        await self._connection.close()


class _Command:
    """A command below sudo."""

    def __init__(self, command: RunningCommand, spec: HostSpec) -> None:
        self._command = command
        self._spec = spec

    @property
    def errors(self) -> bytes:
        return self._command.errors

    def redirect(self, receive: Receive) -> None:
        self._command.redirect(receive)

    def send(self, data: bytes) -> None:
        self._command.send(data)

    def end_input(self) -> None:
        self._command.end_input()

    async def wait(self) -> CommandResult:
        result = await self._command.wait()
        whys = (meaning for pattern, meaning in _REFUSALS if pattern.search(result.errors))
        if result.exit_status and (why := next(whys, "")):
            whom = self._spec.become_user or "root"
            raise BecomeError(
                f"{why}: nothing can be run as {whom}",
                f"sudo is given no password: give the login user a rule LOGIN ALL=({whom}) NOPASSWD: ALL",
            )
        return result

    async def close(self) -> None:
        await self._command.close()
