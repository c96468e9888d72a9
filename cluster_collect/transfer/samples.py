"""Whether a host has the very content that another one brought: it must hash parts that it cannot foresee.

Names, sizes and times can be copied without any of the content, so that they alone prove nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_collect.faults import RemoteFailureError
from cluster_collect.remote.host_stream import HostSource
from cluster_collect.remote.programs import samples_program
from cluster_collect.transfer.verify import hashes_of
from cluster_collect.transports.protocol import RemoteFiles
from cluster_run.manifest import CollectedFile

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


async def has_by_shell(source: HostSource, samples: Sequence[Sample]) -> bool:
    """Whether the host hashes all samples as they are here; False where it cannot."""
    parts = [(sample.source, sample.begin, sample.n_bytes) for sample in samples]
    program = samples_program(source.profiler_root, parts, source.niceness)
    answer = await hashes_of(source, program, _MAX_ANSWER_BYTES)
    hashes = [match.decode() for match in _HASH.findall(answer)]
    return bool(samples) and hashes == [sample.sha256 for sample in samples]


async def has_by_files(files: RemoteFiles, source: HostSource, samples: Sequence[Sample]) -> bool:
    """Whether the files of a host hold all samples as they are here; False where it cannot be read."""
    root = await files.real_path(source.profiler_root)
    for sample in samples:
        content = bytearray()

        def receive(data: bytes, content: bytearray = content) -> float:
            content.extend(data)
            return source.book(len(data))

        try:
            end = sample.begin + sample.n_bytes
            await files.read(root + b"/" + sample.source, end, receive, sample.begin)
        except RemoteFailureError:
            return False
        if hashlib.sha256(content[: sample.n_bytes]).hexdigest() != sample.sha256:
            return False
    return bool(samples)
