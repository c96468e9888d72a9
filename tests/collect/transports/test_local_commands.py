"""Commands of this machine, which stand in the place of connections: `prepare`, and steps of Slurm."""

from __future__ import annotations

import asyncio

from cluster_collect.transports.local import LocalConnection
from cluster_collect.transports.protocol import MAX_ERROR_BYTES, CommandResult, run, take_nothing


def ended(command: str) -> CommandResult:
    return asyncio.run(asyncio.wait_for(run(LocalConnection(), command, b"", take_nothing), 30.0))


def test_all_is_kept_that_a_command_complains_of_at_several_times() -> None:
    assert ended("echo first >&2; sleep 0.2; echo second >&2").errors == b"first\nsecond\n"


def test_a_command_that_complains_without_end_is_not_held_up() -> None:
    result = ended("head -c 3000000 /dev/zero >&2; exit 3")
    assert (result.exit_status, len(result.errors)) == (3, MAX_ERROR_BYTES)
