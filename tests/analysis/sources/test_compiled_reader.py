"""The compiled reader of the communication files gives what Python gives, or leaves the file to Python."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.compiled import reader
from cluster_analysis.sources.compiled.reader import links_of_files, operators_of_files
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.text.communication_json import read_communication, read_matrix
from cluster_reduce import communication, levels, matrix
from cluster_run.facts import Fact
from tests.analysis.runs import REAL_DATA, simulated
from tests.analysis.sources.builders import LINKS, OPS, communication_json, matrix_json
from tests.commands import ran

if reader.compiled() is None:
    pytest.skip("the compiled reader could not be built here", allow_module_level=True)

ROOT = Path(__file__).parents[3]
OPERATORS = json.dumps(communication_json({"step50": OPS, "step51": OPS})).encode()
MATRIX = json.dumps(matrix_json({"step50": LINKS, "step51": LINKS})).encode()
#: What files are spoiled with: all that JSON can say in two ways, and what it must not say.
SPOILERS = [
    b"1e400", b"-0", b"-0.0", b"0e5", b"1E5", b"1e-30", b"NaN", b"Infinity", b"01", b"1.", b".5", b"+1", b"-",
    b"1e", b"123456789012345678901234567890", b"0.1234567890123456789012345", b"18446744073709551616", b"-1",
    b"-2.5", b"null", b"true", b"tru", b'""', b'"x"', b'"\\u0041"', b'"\xe4\xb8\xad"', b'"\xff"', b'"\x01"',
    b"[]", b"{}", b"[1]", b"[1, 2, 3]", b"[" * 40 + b"]" * 40, b"[" * 3000, b",", b":", b"}", b"{", b'"',
    b"\\", b" ", b"\n", b"\0", b"\xef\xbb\xbf", b'"p2p": {}, ', b'"Elapse Time(ms)": 7.5, ',
    b'"Total Op Info": {}, ', b'"step50": {}, ', b'"Start Timestamp(us)": "1.5", ', b"@", b"__",
    b'"Size Distribution": {"1": [1, 2], "1": [3, 4]}, ',
]  # fmt: skip

Said = list[tuple[Fact, ...]]
BOTH = ((read_communication, OPERATORS), (read_matrix, MATRIX))


@contextmanager
def by_python() -> Iterator[None]:
    os.environ[reader.CHOICE] = "python"
    try:
        yield
    finally:
        del os.environ[reader.CHOICE]


def outcome(read: Callable[..., object], path: Path) -> tuple[object, Said]:
    """What a reader gives or raises, and what it says on the way."""
    said: Said = []
    try:
        value = read([(str(path), 3)], lambda *facts: said.append(facts))
    except BadFileError as error:
        return error.args, said
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        return (type(error), str(error)), said
    tables = [value] if isinstance(value, pa.Table) else [value.collectives, value.packets, value.spans]
    for table in tables:
        table.validate(full=True)
    return [table.to_pylist() for table in tables], said


def assert_the_same(path: Path, read: Callable[..., object] = read_communication) -> None:
    found = outcome(read, path)
    with by_python():
        expected = outcome(read, path)
    # As text: it tells 0.0 from -0.0, and shows every digit.
    assert repr(found) == repr(expected), path


def captured(name: str) -> list[Path]:
    files = sorted(REAL_DATA.rglob(name))
    if not files:
        pytest.skip("no real captures here")
    return files


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = {"tp": 2, "pp": 2, "dp": 2, "steps": 3}
    return simulated(tmp_path_factory.mktemp("job") / "run", "slow_rank:1.25", **sizes)


@pytest.mark.slow
def test_every_real_communication_file_is_read_by_the_compiled_reader_and_as_python_reads_it() -> None:
    for path in captured("communication.json"):
        assert operators_of_files([str(path)], [0], with_places=True) is not None, path
        assert_the_same(path)


@pytest.mark.slow
def test_every_real_matrix_file_is_read_by_the_compiled_reader_and_as_python_reads_it() -> None:
    for path in captured("communication_matrix.json"):
        assert links_of_files([str(path)], [0]) is not None, path
        assert_the_same(path, read_matrix)


def test_simulated_files_are_read_by_the_compiled_reader_and_as_python_reads_them(run: Path) -> None:
    files = sorted(run.rglob("communication.json"))
    assert len(files) == 8
    for path in files:
        assert operators_of_files([str(path)], [0], with_places=True) is not None
        assert_the_same(path)
    for path in sorted(run.rglob("communication_matrix.json")):
        assert links_of_files([str(path)], [0]) is not None
        assert_the_same(path, read_matrix)


def test_the_files_that_are_spoiled_here_are_read_by_the_compiled_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(OPERATORS)
    assert operators_of_files([str(path)], [0], with_places=True) is not None
    path.write_bytes(MATRIX)
    assert links_of_files([str(path)], [0]) is not None


def test_a_time_that_nothing_can_have_is_told_of_a_plain_file_too(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    spoiled = re.sub(rb'"Wait Time\(ms\)": [0-9.]+', b'"Wait Time(ms)": 1.7e12', OPERATORS, count=1)
    path.write_bytes(spoiled)
    assert operators_of_files([str(path)], [0], with_places=True) is not None
    _, said = outcome(read_communication, path)
    assert [fact.kind for (fact,) in said] == ["left_out"]
    assert_the_same(path)


def test_a_file_cut_off_anywhere_is_told_as_python_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for read, content in BOTH:
        for length in range(0, len(content), max(1, len(content) // 60)):
            path.write_bytes(content[:length])
            assert_the_same(path, read)


@pytest.mark.parametrize(("read", "content"), BOTH)
@given(data=st.data())
def test_a_spoiled_file_gives_what_python_gives(
    tmp_path: Path, read: Callable[..., object], content: bytes, data: st.DataObject
) -> None:
    spoiled = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(spoiled)))
        length = data.draw(st.integers(0, 12))
        spoiled[place : place + length] = data.draw(st.sampled_from(SPOILERS) | st.binary(max_size=3))
    path = tmp_path / "file.json"
    path.write_bytes(spoiled)
    assert_the_same(path, read)


def values_of(document: object, place: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The places of all values of a document."""
    items: Iterable[tuple[object, object]] = ()
    if isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*place, key)
        yield from values_of(value, (*place, key))


@pytest.mark.slow
@pytest.mark.parametrize(("read", "content"), BOTH)
def test_any_value_in_the_place_of_another_gives_what_python_gives(
    tmp_path: Path, read: Callable[..., object], content: bytes
) -> None:
    chance = random.Random(1)
    places = list(values_of(json.loads(content)))
    path = tmp_path / "file.json"
    for _ in range(250):
        document = json.loads(content)
        *way, last = chance.choice(places)
        parent = document
        for key in way:
            parent = parent[key]
        parent[last] = "the spoiler"
        path.write_bytes(json.dumps(document).encode().replace(b'"the spoiler"', chance.choice(SPOILERS)))
        assert_the_same(path, read)


def number_texts(chance: random.Random) -> Iterator[str]:
    """Numbers of JSON: floats as Python writes them, integers, digits with dot and exponent."""
    while True:
        (value,) = struct.unpack("d", struct.pack("Q", chance.getrandbits(63)))
        if math.isfinite(value):
            yield repr(value)
        yield repr(chance.uniform(-10, 10) * 10 ** chance.randint(-5, 7))
        digits = str(chance.getrandbits(chance.randint(1, 66)))
        yield digits
        yield f"{digits}e{chance.randint(-40, 40)}"
        place = chance.randint(1, len(digits))
        yield f"{digits[:place]}.{digits[place:] or 0}"
        yield f"0.{'0' * chance.randint(0, 6)}{digits}E+0{chance.randint(0, 3)}"


def test_a_number_is_the_float_that_python_makes_of_it() -> None:
    n_read = 0
    for text in islice(number_texts(random.Random(1)), 60_000):
        found = reader.compiled().number(text.encode())  # type: ignore[union-attr]
        if found is not None:
            n_read += 1
            assert repr(found) == repr(msgspec.json.decode(text.encode(), type=float)), text
            assert found == float(text)
    assert n_read > 30_000


@pytest.mark.parametrize(
    "text", ["-0", "-0.0", "1e400", "01", "1.", ".5", "+1", "-", "1e", "NaN", "", "1 ", "0x1"]
)
def test_what_is_no_plain_number_is_left_to_python(text: str) -> None:
    assert reader.compiled().number(text.encode()) is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["0.1", "12", "1736408883732241.5", "9.80119625000002e-05", "0.9801196250000002"]
)
def test_numbers_as_profilers_write_them_are_read_by_the_compiled_reader(text: str) -> None:
    assert reader.compiled().number(text.encode()) == float(text)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_hostile_files_do_nothing_that_sanitizers_find(tmp_path: Path) -> None:
    texts = {"operators.json": OPERATORS, "matrix.json": MATRIX}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "tools.fuzz", "1", *(tmp_path / name for name in texts)]
    ended = ran(command, cwd=ROOT, timeout=290)
    if ended.returncode == 77:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_without_a_compiler_the_project_builds_and_the_compiled_reader_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".*", "build", "*.egg-info", "tests", "docs", "*.so", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignored)
    # With the setuptools that are here: pip would fetch others first.
    build = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
    command = [sys.executable, "-W", "ignore", "-c", build, tmp_path / "dist"]
    ran(command, check=True, cwd=source, env={**os.environ, "CC": "/bin/false"})
    target = tmp_path / "installed"
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    shutil.unpack_archive(wheel, target, "zip")
    assert not list(target.rglob("*.so"))
    ask = "from cluster_analysis.sources.compiled import reader; print(reader.in_use(), reader.__file__)"
    there = {**os.environ, "PYTHONPATH": str(target)}
    said = ran([sys.executable, "-c", ask], check=True, env=there, cwd=tmp_path)
    assert said.stdout.startswith(f"JSON by Python {target}")


def test_both_readers_know_the_same_keys() -> None:
    key = re.compile(r'"((?:[A-Z][a-z]+ )+[A-Z][a-z]+(?:\([a-zA-Z]+\))?|op_name)"')
    c_files = Path(reader.__file__).parent.glob("*.c")
    python_files = (Path(one.__file__) for one in (communication, levels, matrix))
    of_c, of_python = (
        {one for path in files for one in key.findall(path.read_text())} for files in (c_files, python_files)
    )
    assert of_c == of_python
