"""What runs on a host: it fits old Pythons, leaves files as they were, and reads what profilers say."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.live.host import captures, processes, settings
from cluster_collect.live.host.__main__ import Agent
from cluster_collect.live.host.profiler_logs import Logs
from cluster_collect.live.ways.msmonitor import text_of
from cluster_collect.live.ways.protocol import Request
from cluster_collect.live.ways.torch_file import configuration
from tests.collect.live.hosts import ROOT
from tests.commands import HANGS_S

LIVE = ROOT / "cluster_collect" / "live"
SOURCES = sorted((LIVE / "host").glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_it_is_python_37_and_imports_nothing_but_the_standard_library_and_itself(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names}
    assert roots <= set(sys.stdlib_module_names) | {"cluster_collect"}
    assert all(
        not name.startswith("cluster_") or name.startswith("cluster_collect.live.host") for name in names
    )


def test_a_file_gets_its_content_and_its_time_back_and_a_strangers_change_stays(tmp_path: Path) -> None:
    path = tmp_path / "profiler_config.json"
    path.write_text('{"start_step": 0}')
    os.utime(path, (1000.5, 1000.5))
    path.chmod(0o604)
    files = settings.Files()
    files.replace(str(path), '{"start_step": 7}')
    assert json.loads(path.read_text()) == {"start_step": 7}
    assert abs(path.stat().st_mtime - time.time()) < 60
    assert path.stat().st_mode & 0o777 == 0o604
    assert files.put_back(str(path))
    assert (path.read_text(), path.stat().st_mtime) == ('{"start_step": 0}', 1000.5)
    files.replace(str(path), '{"start_step": 8}')
    path.write_text("theirs")
    assert not files.put_back(str(path))
    assert path.read_text() == "theirs"
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "no temporary file is left"


@pytest.mark.parametrize(
    "content", ["theirs", "[" * 100_000, b"\xff"], ids=["text", "nested without end", "no UTF-8"]
)
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "profiler_config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"profiler_config\.json: this is no JSON$"):
        settings.read(str(path))


def test_steps_of_a_file_with_a_cell_without_end_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "step_trace_time.csv").write_text("Step\n" + "1" * 200_000)
    assert captures._steps(str(tmp_path)) is None


def test_two_changes_are_two_whole_seconds_apart(tmp_path: Path) -> None:
    path = tmp_path / "profiler_config.json"
    path.write_text("{}")
    files = settings.Files()
    times = [files.replace(str(path), text) for text in ("1", "2")]
    assert int(times[1]) - int(times[0]) >= 2


def test_a_lock_is_held_against_others_and_shared_by_hosts_of_one_capture(tmp_path: Path) -> None:
    one, other = settings.Files(), settings.Files()
    assert one.lock(str(tmp_path), "lock", "capture-1", "host-1") == "ours"
    assert other.lock(str(tmp_path), "lock", "capture-1", "host-2") == "host-1"
    with pytest.raises(settings.HeldError, match="capture-1"):
        other.lock(str(tmp_path), "lock", "capture-2", "host-2")
    one.unlock()
    assert other.lock(str(tmp_path), "lock", "capture-2", "host-2") == "ours"
    other.unlock()


@pytest.mark.parametrize("asked", [{"do": "talk", "link": 1}, {"do": "post", "path": "/", "longest_s": 5.0}])
def test_a_port_on_which_nobody_answers_is_named(asked: dict[str, object]) -> None:
    with socket.socket() as bound:  # and does not listen
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        told = Agent().answer({**asked, "port": port})
    assert told == {"error": f"port {port}: Connection refused"}


def test_only_what_we_made_is_removed(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    assert not captures.remove(str(tmp_path / "theirs"))
    captures.make(str(tmp_path / "ours"), str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    assert not captures.remove(str(tmp_path / "link"))
    assert captures.remove(str(tmp_path / "ours"))
    assert (tmp_path / "theirs").is_dir()


@given(st.integers(-26, 26), st.integers(0, 10**6))
def test_a_log_of_another_time_zone_tells_the_same_moment(quarters: int, step: int) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"logs-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "dp_node_41_rank_3.log"
    at_s = time.time() - 2.5
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s + 900 * quarters))
    path.write_text(f"{stamp},250 [INFO] [41] x.py: Start Dynamic Profiler at {step} step.\n")
    (told,) = Logs().events(str(folder), [41])
    path.unlink()
    folder.rmdir()
    assert (told["kind"], told["n"], told["rank"]) == ("started", step, 3)
    assert abs(told["at_s"] - at_s) < 3.5


def test_lines_are_told_once_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "dp_node_41_rank_3.log"
    line = "2026-01-01 00:00:00,000 [INFO] [41] x.py: Start step will be set to {}.\n"
    path.write_text(line.format(5) + line.format(6)[:-4])
    logs = Logs()
    assert [one["n"] for one in logs.events(str(tmp_path), [41])] == [5]
    with path.open("a") as stream:
        stream.write(line.format(6)[-4:])
    assert [one["n"] for one in logs.events(str(tmp_path), [41])] == [6]
    assert logs.events(str(tmp_path), [41]) == []
    assert logs.events(str(tmp_path), [42]) == []


def test_the_program_ends_with_its_input_and_undoes_what_it_was_told_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    process = subprocess.Popen(
        [sys.executable, "-c", "from cluster_collect.live.host.__main__ import main; main()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    requests = [
        {"do": "replace", "path": str(path), "text": "ours"},
        {"do": "nonsense"},
        {"do": "at_end", "requests": [{"do": "nonsense"}, {"do": "put_back", "path": str(path)}]},
    ]
    process.stdout.readline()
    for request in requests:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert ("error" in answer) == (request["do"] == "nonsense")
    assert path.read_text() == "ours"
    process.stdin.close()
    assert process.wait(HANGS_S) == 0
    process.stdout.close()
    assert path.read_text() == "before"


def test_a_request_asks_for_what_the_analysis_reads_and_never_for_the_next_step() -> None:
    request = Request("id", 1203, 3, 1, "/data/live", "Level1")
    assert list(request.steps) == [1204, 1205, 1206]
    document = json.loads(configuration(request))
    assert (document["start_step"], document["active"], document["warmup"]) == (1203, 3, 1)
    assert document["metadata"] == {"cluster_live": "id"}
    costly = ("analyse", "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
    assert [document[name] for name in costly] == [False] * len(costly)
    lines = dict(line.split("=") for line in text_of(request).split("\n"))
    assert lines["PROFILE_START_STEP"] == "1203"
    assert lines["WARMUP_ITERATIONS"] == "1"
    assert lines["PROFILE_ACTIVITIES"] == "CPU,NPU", "without it the job's own step would fail"
    assert lines["PROFILE_ANALYSE"] == "false"


def test_a_host_sends_each_variable_that_is_asked_for_and_no_other() -> None:
    asked = re.findall(
        r'environment(?:\.get\(|, )("[A-Z_"\s,]+)\)',
        (LIVE / "sight.py").read_text(),
    )
    assert {name for one in asked for name in re.findall(r"\w+", one)} == set(processes._NAMES)
