"""Tasks that fail in the ways tasks fail; in a module, so that worker processes can import them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def square(number: int) -> int:
    return number * number


def total(numbers: list[int]) -> int:
    return sum(numbers)


def fail(number: int) -> int:
    raise OSError(f"stale file handle {number}")


def fail_for(number: int, bad: int) -> int:
    return fail(number) if number == bad else square(number)


def fail_until(counter: str, n_failures: int) -> int:
    """Raise until it has been called more than `n_failures` times; the calls are counted in a file."""
    path = Path(counter)
    with path.open("a") as stream:
        stream.write("x")
    if path.stat().st_size <= n_failures:
        raise OSError("not yet")
    return path.stat().st_size


def kill_own_process(number: int, victim: int, marker: str = "") -> int:
    """Kill the process that runs `victim`; with a marker file only the first time."""
    if number == victim and not (marker and Path(marker).exists()):
        if marker:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


@dataclass(frozen=True)
class Large:
    """A large half with pieces."""

    pieces: dict[int, bytes]

    def piece(self, key: int) -> bytes:
        return self.pieces[key]


def small_and_large(number: int) -> tuple[int, Large]:
    return number, Large({1: b"a" * number, 2: b"b" * number})


def total_length(parts: list[bytes]) -> int:
    return sum(map(len, parts))


def large_arrays(n: int) -> tuple[npt.NDArray[np.float64], pa.Table]:
    """Arrays of this length, some alone and some in a table."""
    return np.arange(n) / 3.0, pa.table({"small": pa.array(range(3)), "text": pa.array(["a", None, "c" * n])})


class Gone:
    """A value that lies in a file, which nobody finds."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return open, ("/nowhere/value-1",)


def lost_on_the_way() -> Gone:
    return Gone()


def hang_up() -> str:
    """Be sent what a terminal that closes sends to all processes of its command."""
    os.kill(os.getpid(), signal.SIGHUP)
    return "goes on"
