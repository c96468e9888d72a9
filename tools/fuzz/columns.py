"""Hostile columns files: each gives rows as the analysis reads them, or is refused by the reader.

The checksum of each is right, so that what is behind it is reached.
"""

from __future__ import annotations

import json
import random
import resource
import time
import zlib
from pathlib import Path

from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.errors import BadFileError
from cluster_reduce.communication import reduce_communication
from cluster_reduce.form import SCHEMA

#: What one file may take besides the modules: above it a bound is missing, and Python runs out of memory.
_MOST_BYTES = 4 << 30
_VALUES: tuple[object, ...] = (0, 1, -1, 9, 2**31, 2**62, -(2**63), 2**70, [], ["start_ns"], "ints", None, {})


def fuzz_columns(text: Path, folder: Path, seconds: float) -> int:
    """Read spoiled columns of a `communication.json` for so many seconds; return how many files that were.

    Raises:
        Exception: what the reader made of a file that it neither read nor refused; it lies in `folder`.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, before[1]))
    _, _, rest = reduce_communication(text.read_bytes()).partition(b"\n")
    length, _, packed = rest.partition(b"\n")
    head, body = zlib.decompress(packed[: int(length)]), packed[int(length) :]
    chance, path = random.Random(seconds), folder / "communication.json.columns"
    end_s, n_files = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        path.write_bytes(_spoiled(json.loads(head), body, chance))
        n_files += 1
        try:
            file = ColumnsFile(path, "communication")
            for column in json.loads(head)["columns"]:
                file.ints(column["name"])
        except BadFileError:
            continue
    resource.setrlimit(resource.RLIMIT_AS, before)  # the other fuzzer's shadow memory is larger
    return n_files


def _spoiled(head: dict[str, object], body: bytes, chance: random.Random) -> bytes:
    columns = head["columns"]
    assert isinstance(columns, list)
    for _ in range(chance.randrange(4)):
        column = chance.choice([head, *columns])
        column[chance.choice([*column, "begin", "n_planes"])] = chance.choice(
            [*_VALUES, chance.randrange(1 << 24)]
        )
    content = bytearray(body)
    for _ in range(chance.randrange(3)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    head["crc32"] = zlib.crc32(content)
    packed = zlib.compress(json.dumps(head).encode())
    return b"%s\n%d\n" % (SCHEMA.encode(), len(packed)) + packed + content
