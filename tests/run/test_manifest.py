"""The manifest comes back as it was written; other versions are refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_run.errors import InputError, SchemaError
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import (
    SCHEMA,
    CollectedFile,
    FileList,
    FileState,
    HostOutcome,
    Manifest,
    manifest_to_json,
    read_manifest,
)

#: A manifest with a NUL in a name is refused when it is read.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
STATES: dict[FileState, int] = {"stored": 1, "unstable": 2, "skipped": 4, "failed": 8}
FILES = st.builds(
    CollectedFile,
    path=TEXTS,
    source=st.text(st.characters(codec=None, exclude_characters="\0")),
    size_bytes=st.integers(0, 2**63),
    mtime_ns=st.integers(-(2**63), 2**63),
    sha256=st.text("0123456789abcdef", max_size=64),
    state=st.sampled_from(["stored", "unstable", "skipped", "failed"]),
    reason=TEXTS,
)
HOSTS = st.builds(
    HostOutcome,
    host=st.integers(1, 99).map(lambda number: HostId(str(number))),
    server_id=TEXTS.filter(bool).map(ServerId),
    state=st.sampled_from(["complete", "partial", "failed"]),
    files=st.lists(FILES, max_size=3).map(FileList),
    clock_offset_ms=st.none() | st.floats(allow_nan=False),
    seconds=st.floats(0, 1e9),
)
MANIFESTS = st.builds(
    Manifest,
    what=st.lists(st.text(), max_size=3).map(tuple),
    hosts=st.lists(HOSTS, max_size=3).map(tuple),
    tool_version=st.text(),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "manifest.json"


@given(manifest=MANIFESTS)
def test_what_was_written_is_read(manifest: Manifest, path: Path) -> None:
    path.write_text(manifest_to_json(manifest))
    assert read_manifest(path) == manifest


def test_a_name_that_is_not_utf8_comes_back(path: Path) -> None:
    name = b"bad\xff name\n".decode("utf-8", "surrogateescape")
    file = CollectedFile(name, name, 1, 2, "", "stored")
    host = HostOutcome(HostId("1"), ServerId("a"), "complete", FileList([file]))
    path.write_text(manifest_to_json(Manifest(("full",), (host,), "0")), encoding="ascii")
    assert [file.source for file in read_manifest(path).hosts[0].files] == [name]


@given(st.lists(FILES, max_size=20))
def test_a_packed_list_is_the_same_list(files: list[CollectedFile]) -> None:
    plain, packed = FileList(files), FileList(files, packed=True)
    assert list(packed) == files
    assert packed == plain
    assert packed.as_text() == plain.as_text()
    told = [
        (one.n_stored, one.stored_bytes, one.n_columns, one.not_stored, len(one)) for one in (plain, packed)
    ]
    assert told[0] == told[1]


def test_a_packed_list_takes_a_fifth_of_the_room_of_its_text() -> None:
    files = [
        CollectedFile(f"host/1/{number}.csv", f"{number}.csv", number, number, f"{number:064x}", "stored")
        for number in range(1000)
    ]
    packed = FileList(files, packed=True)
    assert len(pickle.dumps(packed)) < len(packed.as_text()) / 5


def test_only_files_in_the_run_directory_count_as_stored() -> None:
    files = FileList(CollectedFile(state, state, size, 0, "", state) for state, size in STATES.items())
    host = HostOutcome(HostId("1"), ServerId("a"), "partial", files)
    assert (host.files.n_stored, host.files.stored_bytes) == (2, 3)


def test_another_schema_version_is_refused_with_path_found_and_wanted(path: Path) -> None:
    path.write_text(json.dumps({"schema": "cluster-run/2", "hosts": []}))
    with pytest.raises(SchemaError) as caught:
        read_manifest(path)
    assert all(part in str(caught.value) for part in (str(path), "cluster-run/2", SCHEMA))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"schema"',
        "{}",
        '{"schema": "cluster-run/1"}',
        '{"schema": "cluster-run/1", "hosts": 3, "what": [], "tool_version": ""}',
        '{"schema": "cluster-run/1", "hosts": [{}], "what": [], "tool_version": ""}',
        "[" * 100_000,
    ],
)
def test_what_is_no_manifest_is_an_input_error_with_its_path(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError, match=r"manifest.json: not a readable manifest"):
        read_manifest(path)


def test_what_a_manifest_lacks_is_said_in_words(path: Path) -> None:
    path.write_text("{}")
    with pytest.raises(InputError, match=r"not a readable manifest: 'schema' is missing"):
        read_manifest(path)


def test_fields_of_a_later_version_are_passed_over(path: Path) -> None:
    host = '{"host": "1", "server_id": "a", "state": "complete", "files": [], "more": 1}'
    path.write_text(
        f'{{"schema": "cluster-run/1", "hosts": [{host}], "what": [], "tool_version": "", "more": 1}}'
    )
    assert read_manifest(path).hosts == (HostOutcome(HostId("1"), ServerId("a"), "complete"),)


def test_a_missing_manifest_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest.json"):
        read_manifest(tmp_path / "manifest.json")
