"""Asks a host what outlives ranks and addresses. No file needs the answer: without one nothing is missing."""

from __future__ import annotations

import time

from cluster_collect.faults import HostError
from cluster_collect.remote.hardware import hardware_of, hardware_program
from cluster_collect.remote.listing import MarkerFilter
from cluster_collect.transports.protocol import HostConnection, run
from cluster_collect.watchdog import until
from cluster_run.ranktable import Hardware

#: All chips of a host answer within some seconds, or are not known this time.
_HARDWARE_DEADLINE_S = 20.0
_MAX_HARDWARE_BYTES = 1 << 18


async def ask_hardware(connection: HostConnection) -> Hardware | None:
    """Return what a host tells of itself; None where it tells nothing, whatever the reason."""
    program = hardware_program()
    noise = MarkerFilter(program.marker)
    printed = bytearray()

    def receive(data: bytes) -> float:
        printed.extend(noise.feed(data)[: _MAX_HARDWARE_BYTES - len(printed)])
        return 0.0

    try:
        asked = run(connection, program.command, program.stdin, receive)
        end_s = time.monotonic() + _HARDWARE_DEADLINE_S
        await until(asked, lambda: end_s - time.monotonic(), "asking for its hardware")
    except HostError:
        return None
    return hardware_of(bytes(printed))
