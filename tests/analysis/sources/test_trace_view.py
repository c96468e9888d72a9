"""The timeline of a capture in text form tells what a profiler database tells of the host."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources import rank_figures
from cluster_analysis.sources.db.host_times_db import read_host_times
from cluster_analysis.sources.db.of_rank import databases_of
from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.reading import Reading
from cluster_analysis.sources.text import trace_view_json
from cluster_analysis.sources.text.trace_view_json import read_trace_view
from cluster_analysis.tables.model import RankSource
from cluster_analysis.tables.schema import Counter
from cluster_run.ids import Rank
from cluster_words.notes import note as sentence
from tests.analysis.real.captures import DATA, needs_captures
from tests.analysis.sources.hand_made_databases import changed

_BEGIN = 1_736_410_576_386_409_710
_NAMES = {1: "aten::copy_", 2: "aclrtSynchronizeStream", 3: "launch", 4: "MEMCPY_ASYNC", 5: "AI_CORE"}


def at(us: float) -> int:
    return _BEGIN + round(us * 1000)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A step of 100 µs: kernels at 20-30, 50-60 and 90-95 µs; the host copies, waits, dispatches between."""
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        base.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", _NAMES.items())
        base.execute("CREATE TABLE STEP_TIME (id, startNs, endNs)")
        base.execute("INSERT INTO STEP_TIME VALUES (7, ?, ?)", (at(0), at(100)))
        base.execute("CREATE TABLE TASK (startNs, endNs, globalTaskId, taskType)")
        base.execute("CREATE TABLE COMPUTE_TASK_INFO (globalTaskId)")
        for number, (begin, end) in enumerate(((20, 30), (50, 60), (90, 95))):
            base.execute("INSERT INTO TASK VALUES (?, ?, ?, 5)", (at(begin), at(end), number))
            base.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (?)", (number,))
        for begin, end in ((12, 14), (70, 75)):
            base.execute("INSERT INTO TASK VALUES (?, ?, 99, 4)", (at(begin), at(end)))
        base.execute("CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, name)")
        for begin, end in ((5, 15), (6, 14), (65, 66)):
            base.execute("INSERT INTO PYTORCH_API VALUES (?, ?, 1)", (str(at(begin)), str(at(end))))
        base.execute("CREATE TABLE CANN_API (startNs, endNs, name)")
        for begin, end, name in ((28, 40, 2), (35, 45, 3), (62, 64, 3)):
            base.execute("INSERT INTO CANN_API VALUES (?, ?, ?)", (at(begin), at(end), name))
        base.execute("CREATE TABLE GC_RECORD (startNs, endNs)")
        base.execute("INSERT INTO GC_RECORD VALUES (?, ?)", (at(80), at(84)))
    base.close()
    return path


def test_copies_before_the_first_operator_count_once_though_calls_nest(database: Path) -> None:
    found = {(metric, label): value for metric, label, value in read_host_times(database, unheard)}
    assert found["head_copy_us", "host"] == 10.0
    assert found["head_copy_us", "device"] == 2.0


def test_each_moment_of_idle_time_has_one_cause_and_all_add_up(database: Path) -> None:
    found = {
        label: value for metric, label, value in read_host_times(database, unheard) if metric == "idle_us"
    }
    assert found == {"synchronising": 10.0, "collecting": 4.0, "dispatching": 7.0, "elsewhere": 29.0}


def test_a_database_without_calls_of_the_host_says_nothing_of_it(database: Path) -> None:
    changed(database, *(f"DROP TABLE {table}" for table in ("PYTORCH_API", "CANN_API", "GC_RECORD")))
    assert read_host_times(database, unheard) == []


_CALL_STACK = "a.py(1): f }, {;\r\n}] b.py"


def event(name: str, begin: float, end: float, **more: object) -> dict[str, object]:
    text = f"{at(begin) // 1000}.{at(begin) % 1000:03}"
    return {"ph": "X", "name": name, "pid": 7, "ts": text, "dur": end - begin, **more}


def kernel(begin: float, end: float, connection: int) -> dict[str, object]:
    return event("MatMul", begin, end, args={"Task Type": "AI_CORE", "connection_id": connection})


def call(name: str, begin: float, end: float, connection: int | None = None) -> dict[str, object]:
    return event(name, begin, end, args={"level": "acl", "connection_id": connection})


#: The job of `test_host_times`: kernels at 20-30, 50-60 and 90-95 µs of a step of 100 µs.
EVENTS: list[dict[str, object]] = [
    event("ProfilerStep#7", 0, 100, cat="cpu_op", args={"Call stack": _CALL_STACK}),
    *(event("aten::copy_", *span, cat="cpu_op") for span in ((5, 15), (6, 14), (65, 66))),
    event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 4, cat="cpu_op"),
    event("train.py(91): step", 0, 100, cat="python_function", args={"Python id": 14}),
    event("GC", 80, 84, cat="GC", args={}),
    *(kernel(*span, number) for number, span in enumerate(((20, 30), (50, 60), (90, 95)))),
    *(event("Computing", *span) for span in ((20, 30), (50, 60), (90, 95))),
    *(event("MEMCPY_ASYNC", *span, args={"Task Type": "SDMA_SQE"}) for span in ((12, 14), (70, 75))),
    call("AscendCL@aclrtSynchronizeStreamWithTimeout", 28, 40),
    call("Node@launch", 35, 45, 1),
    call("Node@launch", 62, 64, 2),
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Python"}},
    {"ph": "C", "name": "AI Core Freq", "ts": "1.0", "pid": 3, "args": {"MHz": 1800}},
]


def figures(found: list[Counter]) -> dict[tuple[str, str], float]:
    return {(metric, label): value for metric, label, value in found}


def read(path: Path, events: object = EVENTS) -> dict[tuple[str, str], float]:
    path.write_text(json.dumps(events))
    return figures(read_trace_view(path, unheard))


def test_a_timeline_and_a_database_of_the_same_calls_say_the_same(tmp_path: Path, database: Path) -> None:
    found = read(tmp_path / "trace_view.json")
    assert found.items() >= figures(read_host_times(database, unheard)).items()
    assert found["data_loader_us", ""] == 4.0
    assert found["dispatch_delay_us", "median"] == (15.0 + 28.0) / 2
    assert found["dispatched_late_share", ""] == 1.0


@pytest.mark.parametrize("n_bytes", [200, 333, 1000])
def test_pieces_of_any_size_give_the_same_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    whole = read(tmp_path / "trace_view.json")
    monkeypatch.setattr(trace_view_json, "_BLOCK_BYTES", n_bytes)
    assert read(tmp_path / "trace_view.json") == whole


def test_a_timeline_without_steps_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "trace_view.json", EVENTS[1:]) == {}
    assert read(tmp_path / "trace_view.json", []) == {}


@pytest.mark.parametrize("n_bytes", [333, 1 << 20])
def test_a_timeline_that_is_cut_off_is_refused_with_the_byte_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    monkeypatch.setattr(trace_view_json, "_BLOCK_BYTES", n_bytes)
    path = tmp_path / "trace_view.json"
    text = json.dumps(EVENTS)
    path.write_text(text[:-40])
    with pytest.raises(BadFileError) as refused:
        read_trace_view(path, unheard)
    assert (refused.value.why.kind, refused.value.why["byte"]) == ("truncated", len(text) - 40)


def test_damage_in_a_timeline_is_told_with_its_place_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_view_json, "_BLOCK_BYTES", 333)
    path = tmp_path / "trace_view.json"
    text = json.dumps(EVENTS)
    at_byte = text.index('"Node@launch"')
    path.write_text(text[:at_byte] + "?" + text[at_byte + 1 :])
    with pytest.raises(BadFileError) as refused:
        read_trace_view(path, unheard)
    assert (refused.value.why["byte"], refused.value.why["n_bytes"]) == (at_byte, len(text))


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), "936", 4.5, None])
def test_a_call_with_an_odd_number_costs_its_own_launch_only(tmp_path: Path, number: object) -> None:
    odd = event("Node@launch", 35, 36, args={"level": "node", "connection_id": number})
    found = read(tmp_path / "trace_view.json", [*EVENTS, odd])
    assert found == read(tmp_path / "trace_view.json")


def test_events_without_a_time_are_counted_and_cost_nothing_else(tmp_path: Path) -> None:
    path, told = tmp_path / "trace_view.json", []
    path.write_text(json.dumps([*EVENTS, dict(EVENTS[1], ts="soon"), dict(EVENTS[1], dur=None)]))
    found = read_trace_view(path, lambda why, *_: told.append(why))
    assert figures(found) == read(tmp_path / "other.json")
    assert [dict(why.values)["n_parts"] for why in told] == [2]


@needs_captures
@pytest.mark.parametrize("rank", [0, 1])
def test_idle_parts_of_a_real_timeline_add_up_to_its_free_time_between_operators(rank: int) -> None:
    path = DATA / "resnet-2of8-pt-text" / f"rank{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
    found = figures(read_trace_view(path, unheard))
    idle_us = sum(value for (metric, _), value in found.items() if metric == "idle_us")
    free_us = sum(float(one["dur"]) for one in json.loads(path.read_text()) if one.get("name") == "Free")
    assert idle_us == pytest.approx(free_us, abs=0.1)
    assert 3_300 < found["data_loader_us", ""] < 4_400
    assert 5_000 < found["head_copy_us", "host"] < 8_000


def test_a_timeline_that_is_too_large_is_named_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(EVENTS))
    monkeypatch.setattr(rank_figures, "_MOST_TIMELINE_BYTES", 100)
    reading = Reading(RankSource(Rank(3), "ascend_pt/text", {"trace_view": str(path)}, 1))
    assert "counters" in rank_figures.read_figures(reading, databases_of(reading))
    assert reading.problems == []
    (note,) = reading.notes
    assert "trace_view.json of rank 3 was not read" in sentence(note).en
