"""Captures that their profiler is still parsing are waited for, where its version says when it is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.entries import RemoteEntry
from cluster_collect.selection.captures import being_parsed
from cluster_run.ids import HostId
from cluster_run.layout import PARSED_MARK_NAME, PARSER_RESTS_S
from tests.collect.helpers import FULL, Recorder, local_host, make_capture, spec_for

WATCHFUL = replace(FULL, parsing_look_s=0.05)
NOW_NS = 1_800_000_000 * 10**9
JUST_NOW_NS = NOW_NS - 10**9
LONG_AGO_NS = NOW_NS - int((PARSER_RESTS_S + 1) * 1e9)


def output_of(root: Path, rank: int) -> Path:
    return make_capture(root, rank) / "ASCEND_PROFILER_OUTPUT"


@pytest.fixture
def one_is_parsed(tmp_path: Path) -> Path:
    """A host with two captures, of which the first is parsed; returns the output of the other."""
    (output_of(tmp_path / "host", 0) / PARSED_MARK_NAME).touch()
    return output_of(tmp_path / "host", 1)


class Parser(Recorder):
    """Parses on when it is told that it is waited for."""

    def __init__(self, parse: Callable[[int], object]) -> None:
        super().__init__()
        self._parse = parse

    def noted(self, host: HostId, text: str) -> None:
        super().noted(host, text)
        if PARSED_MARK_NAME in text:
            self._parse(sum(PARSED_MARK_NAME in note for note in self.notes))


@pytest.mark.parametrize("method", ["local", pytest.param("tar", marks=pytest.mark.slow)])
def test_a_capture_that_is_being_parsed_is_waited_for_and_taken_whole(
    one_is_parsed: Path, tmp_path: Path, method: str, request: pytest.FixtureRequest
) -> None:
    def parse(n_looks: int) -> None:
        (one_is_parsed / "step_trace_time.csv").write_text("Step,Computing\n" + "1,2\n" * n_looks)
        if n_looks == 15:
            (one_is_parsed / PARSED_MARK_NAME).touch()

    host = local_host(tmp_path / "host", tmp_path / "run")
    if method == "tar":
        host = replace(host, spec=spec_for(*map(request.getfixturevalue, ("lab", "server")), host.root))
    watch = Parser(parse)
    host.collect_all(WATCHFUL, watch)
    assert one_is_parsed.parent.name in watch.notes[-2]
    brought = host.landed()
    output = f"{one_is_parsed.parent.name}/{one_is_parsed.name}"
    assert brought[f"{output}/step_trace_time.csv"].count(b"1,2") == 15
    assert f"{output}/{PARSED_MARK_NAME}" in brought


def test_what_is_never_parsed_to_its_end_is_taken_as_it_is(one_is_parsed: Path, tmp_path: Path) -> None:
    host = local_host(tmp_path / "host", tmp_path / "run")
    watch = Parser(lambda _: os.utime(one_is_parsed))
    assert host.collect(replace(WATCHFUL, parsing_deadline_s=3.0), watch).reason == ""
    assert any(PARSED_MARK_NAME in note for note in watch.notes)
    assert any("_1_2024" in name for name in host.landed())


def listed(*captures: tuple[str, int, bool]) -> list[RemoteEntry]:
    """Entries of captures by name, when they were touched, and whether they have the mark."""
    return [
        RemoteEntry(f"{name}/ASCEND_PROFILER_OUTPUT/{file}".encode(), "f", 1, mtime_ns)
        for name, mtime_ns, has_mark in captures
        for file in ("step_trace_time.csv", *([PARSED_MARK_NAME] if has_mark else []))
    ]


@pytest.mark.parametrize(
    ("captures", "expected"),
    [
        ((("a_ascend_pt", JUST_NOW_NS, True), ("b_ascend_pt", JUST_NOW_NS, False)), [b"b_ascend_pt"]),
        ((("a_ascend_pt", JUST_NOW_NS, False), ("b_ascend_pt", JUST_NOW_NS, False)), []),
        ((("a_ascend_pt", LONG_AGO_NS, True), ("b_ascend_pt", LONG_AGO_NS, False)), []),
        ((("a_ascend_pt", JUST_NOW_NS, True), ("other_ascend_pt", JUST_NOW_NS, False)), []),
    ],
    ids=["one is being parsed", "a version without marks", "nobody parses any more", "not asked for"],
)
def test_which_captures_are_being_parsed(
    captures: tuple[tuple[str, int, bool], ...], expected: list[bytes]
) -> None:
    raw = RemoteEntry(b"a_ascend_pt/PROF_1/device_0/data", "f", 1, JUST_NOW_NS)
    entries = [*listed(*captures), raw]
    assert being_parsed(entries, {b"a_ascend_pt", b"b_ascend_pt"}, NOW_NS) == expected
