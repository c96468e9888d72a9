"""Columns files that lie about themselves: each is refused by its head, before memory or time is taken."""

from __future__ import annotations

import json
import random
import resource
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.errors import BadFileError
from cluster_reduce.communication import reduce_communication
from cluster_reduce.form import SCHEMA
from tests.analysis.sources.test_columns import OPERATORS
from tests.commands import ran

Head = dict[str, Any]


def parts_of(content: bytes) -> tuple[Head, bytes]:
    length, _, packed = content.partition(b"\n")[2].partition(b"\n")
    n_bytes = int(length)
    return json.loads(zlib.decompress(packed[:n_bytes])), packed[n_bytes:]


def file_of(head: Head | str, body: bytes) -> bytes:
    """A columns file whose checksum is right, whatever else is not."""
    if not isinstance(head, str):
        head = json.dumps({**head, "crc32": zlib.crc32(body)})
    packed = zlib.compress(head.encode())
    return b"%s\n%d\n" % (SCHEMA.encode(), len(packed)) + packed + body


@cache
def zeros(n_bytes: int, behind: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    pieces = [packer.compress(bytes(min(1 << 20, n_bytes - at))) for at in range(0, n_bytes, 1 << 20)]
    return b"".join([*pieces, packer.compress(behind), packer.flush()])


def ints(name: str, n: int = 0, **more: object) -> Head:
    return {"name": name, "form": "ints", "n": n, "n_planes": 1, **more}


def bomb() -> bytes:
    """128 MB of zeros, which would be as many numbers, in 125 KB; it tells of twice as many."""
    packed = zeros(128 << 20)
    column = ints("start_ns", 32 << 20, n_planes=8)
    return file_of({"kind": "communication", "source_bytes": 1 << 50, "columns": [column]}, packed)


def many_small_ones() -> bytes:
    """Each column is small enough; all together are a gigabyte."""
    n_rows, n_columns = 1 << 20, 128
    packed = zeros(n_rows * n_columns)
    columns = [ints(f"c{n}", n_rows) for n in range(n_columns)]
    return file_of({"kind": "communication", "source_bytes": 1 << 50, "columns": columns}, packed)


def with_columns(columns: list[Head]) -> bytes:
    packed = zeros(0)
    return file_of({"kind": "communication", "source_bytes": 1 << 50, "columns": columns}, packed)


def columns_without_planes() -> bytes:
    return with_columns([ints("start_ns", n_planes=0), {"name": "name", "form": "bytes", "n": 0}])


def many_columns() -> bytes:
    return with_columns([ints(f"c{at}") for at in range(60_000)])


def a_head_of_sixty_megabytes() -> bytes:
    return file_of({"kind": "A" * (60 << 20), "source_bytes": 1, "columns": []}, b"")


def a_deep_head() -> bytes:
    return file_of('{"kind":' + "[" * 200_000 + "]" * 200_000 + "}", b"")


@pytest.mark.many
@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (columns_without_planes, "0 rows of 0 bytes"),
        (bomb, "33554432 rows"),
        (many_small_ones, "more than any file holds"),
        (many_columns, "more than 20000 columns"),
        (a_head_of_sixty_megabytes, "columns:"),
        (a_deep_head, "columns:"),
    ],
)
def test_a_file_that_says_too_much_of_itself_is_refused(
    tmp_path: Path, lie: Callable[[], bytes], said: str
) -> None:
    path = tmp_path / "communication.json.columns"
    path.write_bytes(lie())
    with pytest.raises(BadFileError) as refused:
        ColumnsFile(path, "communication").ints("start_ns")
    assert said in str(refused.value.why)


#: Reads columns of files as the analysis would, and says what that took at most, in KiB, file by file.
READING = """
import sys
from pathlib import Path
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.errors import BadFileError

def most_kib():  # not getrusage: that begins with what the parent had
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

before = most_kib()
for path in sys.argv[2:]:
    try:
        file = ColumnsFile(Path(path), "communication")
        for name in sys.argv[1].split():
            file.ints(name)
    except BadFileError as error:
        print(error.why, file=sys.stderr)
    print(most_kib() - before)
"""


@pytest.mark.slow
def test_no_file_takes_more_memory_than_a_real_one(tmp_path: Path) -> None:
    lies = {lie.__name__: lie() for lie in (bomb, many_small_ones, many_columns, a_head_of_sixty_megabytes)}
    for name, content in lies.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in lies]
    done = ran([sys.executable, "-c", READING, "start_ns c0 c1", *paths], check=True)
    most_kib = dict(zip(lies, map(int, done.stdout.split()), strict=True))
    assert max(most_kib.values()) < 100_000, most_kib
    assert len(done.stderr.splitlines()) == len(lies), "each is refused"


@pytest.mark.slow
def test_the_largest_file_that_is_believed_fits_into_a_gigabyte(tmp_path: Path) -> None:
    n_rows, n_columns = 10_000_000, 5
    columns = [ints(f"c{n}", n_rows, is_delta=True, begin=1) for n in range(n_columns)]
    # What cannot be compressed makes the file as large as a real one would be.
    noise = random.Random(1).randbytes(4_400_000)
    columns.append(ints("letters", len(noise)))
    head = {"kind": "communication", "source_bytes": 1 << 50, "columns": columns}
    path = tmp_path / "communication.json.columns"
    path.write_bytes(file_of(head, zeros(n_rows * n_columns, noise)))
    argv = [sys.executable, "-c", READING, " ".join(f"c{n}" for n in range(n_columns)), path]
    done = ran(argv, check=True)
    assert not done.stderr
    assert 300_000 < int(done.stdout) < 1_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
GOOD_HEAD, GOOD_BODY = parts_of(reduce_communication(json.dumps(OPERATORS).encode()))
PLACES = st.tuples(
    st.integers(0, len(GOOD_HEAD["columns"]) - 1),
    st.sampled_from(["n", "n_planes", "begin", "form", "is_delta", "n_decimals"]),
    st.sampled_from([0, 1, -1, 9, 2**31, 2**62, -(2**63), 2**70, [], ["start_ns"], ["name"], "ints", "bytes"])
    | JSON,
)


@pytest.mark.slow
@given(changes=st.lists(PLACES, min_size=1, max_size=4), cut=st.integers(0, 40))
def test_whatever_a_head_says_the_file_is_read_or_called_damaged(
    tmp_path: Path, changes: list[tuple[int, str, object]], cut: int
) -> None:
    head = json.loads(json.dumps(GOOD_HEAD))
    for place, key, value in changes:
        head["columns"][place][key] = value
    path = tmp_path / "communication.json.columns"
    path.write_bytes(file_of(head, GOOD_BODY[: len(GOOD_BODY) - (cut if cut < 5 else 0)]))
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        file = ColumnsFile(path, "communication")
        for column in head["columns"]:
            for read in (file.ints, file.floats, file.names, file.texts):
                try:
                    read(str(column["name"]))
                except BadFileError:
                    continue
    except BadFileError:
        return
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 200_000
