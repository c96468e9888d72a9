"""Has a host hash its files, whole or in parts, and compares: `--verify`, and hosts that list the same files.

Names, sizes and times prove nothing, because they can be copied without the content. So a host must show the
hash of parts that it cannot foresee.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_collect.faults import HostileDataError, NoShellError, RemoteFailureError
from cluster_collect.remote.host_stream import HostSource
from cluster_collect.remote.programs import RemoteProgram, hash_program, samples_program
from cluster_collect.selection.select import PlacedFile
from cluster_run.manifest import CollectedFile

_RECORD = re.compile(rb"([0-9a-f]{64}) [ *]\./(.*)", re.DOTALL)
_OVERHEAD_BYTES_PER_FILE = 80
_SLACK_BYTES = 4096


async def differing(
    source: HostSource, files: Sequence[PlacedFile], here: Mapping[bytes, CollectedFile]
) -> list[PlacedFile]:
    """Return those of `files`, all of which `here` holds, whose content on the host is another one.

    Raises:
        RemoteFailureError: the host cannot hash files.
        HostError: it did not answer.
    """
    hashes = await _hashes(source, [placed.entry.path for placed in files])
    return [placed for placed in files if hashes.get(placed.entry.path) != here[placed.entry.path].sha256]


async def _hashes(source: HostSource, names: Sequence[bytes]) -> dict[bytes, str]:
    """Return the host's SHA-256 of each file that it could read."""
    program = hash_program(source.spec, names)
    limit = sum(map(len, names)) + _OVERHEAD_BYTES_PER_FILE * len(names) + _SLACK_BYTES
    answer = await hashes_of(source, program, limit)
    matches = [_RECORD.fullmatch(record) for record in answer.split(b"\0")]
    hashes = {match[2]: match[1].decode() for match in matches if match is not None}
    if not hashes:
        raise RemoteFailureError(
            "it cannot be verified: the host runs no sha256sum for us", "call it without --verify"
        )
    return hashes


async def hashes_of(source: HostSource, program: RemoteProgram, max_bytes: int) -> bytes:
    """Return what the host's program prints of hashes; nothing where the host runs none for us.

    Raises:
        HostileDataError: it sends more than `max_bytes`.
        HostError: it did not answer.
    """
    answer = bytearray()

    def take(data: bytes) -> None:
        answer.extend(data)
        if len(answer) > max_bytes:
            raise HostileDataError("the host sends more hashes than it was asked for")

    with contextlib.suppress(NoShellError):  # as where it does not answer
        await source.commands.run(program, take, source.book)
    return bytes(answer)


N_SAMPLED = 16
_MAX_SAMPLE_BYTES = 64 << 10
_MAX_ANSWER_BYTES = 4096
_HASH = re.compile(rb"([0-9a-f]{64}) ")
_chance = secrets.SystemRandom()


@dataclass(frozen=True)
class Sample:
    """A part of a file, by its name on the hosts, and the SHA-256 that it has here."""

    source: bytes
    begin: int
    n_bytes: int
    sha256: str


def to_sample(files: Iterable[CollectedFile]) -> tuple[CollectedFile, ...]:
    """Choose some files by chance among those that lie here as the host has them."""
    whole = [
        file for file in files if file.state == "stored" and file.reduced_from_bytes is None and file.path
    ]
    filled = [file for file in whole if file.size_bytes]
    return tuple(_chance.sample(filled, min(N_SAMPLED, len(filled))))


def samples_of(run_directory: Path, files: Iterable[CollectedFile]) -> list[Sample]:
    """Choose a part of each file by chance, and hash what lies here of it; one that is gone is left out."""
    samples = []
    for file in files:
        begin = _chance.randrange(max(1, file.size_bytes - _MAX_SAMPLE_BYTES))
        try:
            with open(os.path.join(os.fsencode(run_directory), os.fsencode(file.path)), "rb") as stream:
                stream.seek(begin)
                content = stream.read(_MAX_SAMPLE_BYTES)
        except FileNotFoundError:
            continue  # it changed on its host, and comes anew
        sha256 = hashlib.sha256(content).hexdigest()
        samples.append(Sample(os.fsencode(file.source), begin, len(content), sha256))
    return samples


async def has_all(source: HostSource, samples: Sequence[Sample]) -> bool:
    """Whether the host hashes all samples as they are here; False where it cannot."""
    parts = [(sample.source, sample.begin, sample.n_bytes) for sample in samples]
    program = samples_program(source.spec, parts)
    answer = await hashes_of(source, program, _MAX_ANSWER_BYTES)
    hashes = [match.decode() for match in _HASH.findall(answer)]
    return bool(samples) and hashes == [sample.sha256 for sample in samples]
