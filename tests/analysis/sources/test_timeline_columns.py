"""A timeline that a host read event by event gives the figures that the analysis makes of the file."""

from __future__ import annotations

import codecs
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.form import SUFFIX, UnfitError, Writer
from cluster_reduce.sums import spans, trace_view
from cluster_reduce.sums.trace_view import reduce_trace_view, unread
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA, needs_captures
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.test_trace_view import EVENTS, call, event, kernel
from tests.analysis.sources.twins import assert_same


def tables_of(root: Path) -> RankTables:
    return read_rank(source_of(root, 0, "ascend_pt/text", trace_view=root / "trace_view.json"))


def put(root: Path, content: bytes) -> RankTables:
    """The tables of a file; its columns, if any, go."""
    path = root / "trace_view.json"
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    path.write_bytes(content)
    return tables_of(root)


def put_columns(root: Path, columns: bytes) -> RankTables:
    path = root / "trace_view.json"
    path.with_name(path.name + SUFFIX).write_bytes(columns)
    path.unlink(missing_ok=True)
    return tables_of(root)


def assert_same_on_host(root: Path, events: object) -> RankTables:
    raw = put(root, json.dumps(events).encode())
    columns = reduce_trace_view(bytes(root / "trace_view.json"))
    assert_same(raw, put_columns(root, columns))
    return raw


@pytest.mark.parametrize("n_bytes", [1, 7, 333, 1 << 20])
def test_a_host_reads_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    monkeypatch.setattr(trace_view, "_BLOCK_BYTES", n_bytes)
    found = assert_same_on_host(tmp_path, EVENTS)
    assert "head_copy_us" in found.figures["counters"]["metric"].to_pylist()


@needs_captures
@pytest.mark.parametrize("rank", [0, 1])
def test_a_host_reads_a_real_timeline_as_the_analysis_does(tmp_path: Path, rank: int) -> None:
    path = DATA / "resnet-2of8-pt-text" / f"rank{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
    raw = put(tmp_path, path.read_bytes())
    reduced = put_columns(tmp_path, reduce_trace_view(bytes(path)))
    assert_same(raw, reduced)
    assert raw.figures["counters"].num_rows == 9


TIMES = st.sampled_from([0, 0.5, 1, 3, 10, 40, 41, 100, 160])
NAMES = ("aten::copy_", "enumerate(DataLoader)#_next", "ProfilerStep#8")
MADE = st.one_of(
    st.builds(lambda a, b, name: event(name, a, b, cat="cpu_op"), TIMES, TIMES, st.sampled_from(NAMES)),
    st.builds(lambda a, b: event("GC", a, b, cat="GC"), TIMES, TIMES),
    st.builds(lambda a, b: event("Computing", a, b), TIMES, TIMES),
    st.builds(lambda a, b: event("MEMCPY_ASYNC", a, b, args={"Task Type": "SDMA_SQE"}), TIMES, TIMES),
    st.builds(kernel, TIMES, TIMES, st.integers(-2, 3)),
    st.builds(call, st.sampled_from(["AscendCL@aclrtSynchronizeStream", "Node@launch"]), TIMES, TIMES),
    st.builds(lambda a, b, n: call("Node@launch", a, b, n), TIMES, TIMES, st.integers(-2, 3)),
    st.builds(lambda ts, dur: dict(EVENTS[1], ts=ts, dur=dur), *[st.sampled_from(
        ["1736408883704643.212", "soon", "", None, 17, 1.25, "NaN", "Infinity", "1e300", 10**18, "-5", 0.29]
    )] * 2),
)  # fmt: skip


@given(st.lists(MADE, max_size=25), st.booleans())
def test_whatever_a_host_reads_is_what_the_file_gives(
    tmp_path: Path, events: list[dict[str, object]], has_step: bool
) -> None:
    assert_same_on_host(tmp_path, EVENTS[:has_step] + events)


PARTS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda one: (one[0], sum(one))))


@given(PARTS, PARTS)
def test_unions_and_differences_of_spans_hold_each_moment_that_they_should(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    unions = [spans.merged([a for a, _ in one], [b for _, b in one]) for one in (left, right)]
    ours, theirs = ({at for begin, end in one for at in range(begin, end)} for one in (left, right))
    assert [{at for begin, end in one for at in range(begin, end)} for one in unions] == [ours, theirs]
    assert all(end < begin for one in unions for (_, end), (begin, _) in pairwise(one))
    assert spans.common(*unions) == len(ours & theirs)
    assert spans.length_of(spans.without(*unions)) == len(ours - theirs)


@given(PARTS)
def test_a_union_that_is_merged_early_is_the_same(parts: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "_MERGED_FROM", 3)
        early = spans.Spans()
        for begin, end in parts:
            early.add(begin, end)
    assert early.merged() == spans.merged([a for a, _ in parts], [b for _, b in parts])


TEXT = json.dumps(EVENTS).encode()
DAMAGE = {
    "cut off": TEXT[:-40],
    "without its end": TEXT[:-1],
    "something behind it": TEXT + b"]",
    "a hole": TEXT[:300] + b"\0" * 100 + TEXT[400:],
    "a flipped letter": TEXT.replace(b'"ph"', b"?ph?", 1),
    "no UTF-8": TEXT.replace(b"MatMul", b"Mat\xffMul"),
    "a comma too many": TEXT.replace(b'}, {"ph"', b'}, , {"ph"', 1),
    "an object": b'{"traceEvents": ' + TEXT + b"}",
    "numbers": b"[1, 2]",
    "an event that is none": TEXT[:-1] + b", 5]",
    "a name that is a number": TEXT.replace(b'"MatMul"', b"5", 1),
    "arguments that are a list": TEXT[:-1] + b', {"args": []}]',
    "a level that is a number": TEXT[:-1] + b', {"args": {"level": 1}}]',
    "a time that is true": TEXT[:-1] + b', {"ts": true}]',
    "nothing": b" ",
    "depth": b"[" * 100_000,
    "a deep event": b'[{"args":' * 100_000,
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_timeline_is_refused_by_both(tmp_path: Path, content: bytes) -> None:
    raw = put(tmp_path, content)
    assert [problem.file for problem in raw.problems].count("trace_view.json") == 1
    with pytest.raises(UnfitError):
        reduce_trace_view(bytes(tmp_path / "trace_view.json"))


@pytest.mark.parametrize("key", [b"pid", b"ts", b"dur"])
def test_what_python_writes_for_no_number_is_null_for_both(tmp_path: Path, key: bytes) -> None:
    content = re.sub(rb'("%b": )[^,}]+' % key, rb"\1NaN", TEXT, count=1)
    raw = put(tmp_path, content)
    assert content != TEXT
    assert_same(raw, put_columns(tmp_path, reduce_trace_view(bytes(tmp_path / "trace_view.json"))))


def test_a_timeline_may_begin_with_the_mark_of_its_encoding(tmp_path: Path) -> None:
    for content in (TEXT, codecs.BOM_UTF8 + TEXT):
        raw = put(tmp_path, content)
        assert raw.figures["counters"].num_rows
        assert_same(raw, put_columns(tmp_path, reduce_trace_view(bytes(tmp_path / "trace_view.json"))))


def test_an_event_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_view, "_MOST_EVENT_LETTERS", 5_000)
    monkeypatch.setattr(trace_view, "_BLOCK_BYTES", 1_000)
    path = tmp_path / "trace_view.json"
    path.write_bytes(b'[{"name": "' + b"x" * 100_000)
    with pytest.raises(UnfitError, match="damaged"):
        reduce_trace_view(bytes(path))


def test_what_a_host_could_not_read_is_a_problem_that_says_why(tmp_path: Path) -> None:
    found = put_columns(tmp_path, unread(5_000, "more memory than --columns-memory"))
    (problem,) = [one for one in found.problems if one.file == "trace_view.json"]
    assert (problem.why.kind, problem.why["detail"]) == (
        "not_read_on_host",
        "more memory than --columns-memory",
    )


LIES: dict[str, dict[str, Any]] = {
    "another figure": {"metric": ["loss"]},
    "more figures than numbers": {"metric": ["idle_us", "idle_us"]},
    "no number": {"value": [float("nan")]},
    "no label": {"label": [None]},
    "two reasons": {"why": ["", ""]},
    "no count": {"n_bad": []},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_hostile_columns_of_a_timeline_are_a_problem(tmp_path: Path, lie: dict[str, Any]) -> None:
    said: dict[str, Any] = {"why": [""], "n_bad": [0], "metric": ["idle_us"], "label": ["x"], "value": [1.0]}
    writer = Writer("timeline", 5_000)
    for name, values in {**said, **lie}.items():
        add = {"n_bad": writer.ints, "value": writer.floats}.get(name, writer.texts)
        add(name, values)
    found = put_columns(tmp_path, writer.content())
    assert [problem.file for problem in found.problems].count("trace_view.json") == 1
    assert found.figures["counters"].num_rows == 0
