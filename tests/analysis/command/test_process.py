"""What a process of the command prints, loads and leaves, whatever its environment is."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_analysis.cli import main
from cluster_collect.cli import main as collect
from cluster_run.command_line import language_of
from tests.analysis.runs import digests, real, write_small_run

#: A second alone, most of a minute where other suites share two processors.
pytestmark = pytest.mark.timeout(600)
OURS = ("PYTHONIOENCODING", "PYTHONUTF8", "ARROW_DEFAULT_MEMORY_POOL", "LC_ALL", "LC_MESSAGES", "LANG")


def called(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    argv = [sys.executable, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, timeout=580, check=False, env={**kept, **environment})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "form"), [("ascii", "terminal"), ("cp1252", "markdown"), ("ascii", "json")]
)
def test_a_result_is_printed_whatever_stdout_can_hold(slow_run: Path, encoding: str, form: str) -> None:
    argv = ("-m", "cluster_analysis", slow_run, "--no-output", "--format", form)
    done = called(*argv, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "slow" in text
    assert "\\u" not in text


@pytest.mark.parametrize(
    "command", ["cluster_collect", "cluster_analysis", "cluster_simulate", "cluster_hook"]
)
def test_a_help_text_is_printed_whatever_stdout_can_hold(command: str) -> None:
    done = called("-m", command, "--help", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


@pytest.mark.slow
def test_a_path_that_is_not_utf8_is_read_and_named(slow_run: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"run-\xff")
    shutil.copytree(slow_run, odd)
    captures = sorted(odd.rglob("*_ascend_pt"))
    captures[0].rename(captures[0].with_name(os.fsdecode(b"h\xff_1_20250101000000000_ascend_pt")))
    (captures[1] / "ASCEND_PROFILER_OUTPUT" / "communication.json").unlink()
    done = called("-m", "cluster_analysis", odd, "--json", "-q", "--no-insight")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["run"]["path"] == str(odd)
    written = (odd / "cluster_analysis_output" / "findings.json").read_bytes()
    assert json.loads(written)["run"]["path"] == str(odd)
    assert (odd / "cluster_analysis_output" / "report.html").is_file()


CHINESE = re.compile("[\u4e00-\u9fff]")
#: Words of English prose; names of kinds, files, programs and metrics stay as they are.
ENGLISH = re.compile(r"\b(the|is|are|of|and|with|its|slower|peers|every|step|saved)\b")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_chinese_that_is_asked_for_holds_no_english_sentence(
    slow_run: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(slow_run), "--no-output", "-q", "--lang", "zh", "--format", form]) == 0
    # Paths are nobody's language.
    text = "\n".join(line for line in capsys.readouterr().out.splitlines() if "pytest" not in line)
    assert "慢卡 3" in text
    assert not ENGLISH.search(text), ENGLISH.search(text)


def test_the_environment_says_the_language(
    slow_output: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert main(["report", str(slow_output)]) == 0
    assert CHINESE.search(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("wanted", "environment", "encoding", "language"),
    [
        pytest.param(None, {"LANG": "zh_CN.UTF-8"}, "utf-8", "zh", id="that of the environment"),
        pytest.param(None, {"LANG": "en_US.UTF-8"}, "utf-8", "en", id="another one"),
        pytest.param(None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "utf-8", "en", id="LC_ALL first"),
        pytest.param("en", {"LANG": "zh_CN.UTF-8"}, "utf-8", "en", id="the option overrules it"),
        pytest.param(None, {"LANG": "zh_CN.UTF-8"}, "ascii", "en", id="stdout cannot write it"),
    ],
)
def test_the_language_is_that_asked_for_or_of_the_environment(
    wanted: str | None,
    environment: dict[str, str],
    encoding: str,
    language: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language_of(wanted, io.TextIOWrapper(io.BytesIO(), encoding)) == language


def test_json_holds_facts_and_english_sentences_whatever_the_language(
    slow_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(slow_run), "--no-output", "-q", "--lang", "zh", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (finding,) = [one for one in document["findings"] if one["kind"] == "slow_rank"]
    assert finding["facts"][0]["kind"] == "rank_computing"
    assert finding["separable"] is True
    assert {"group", "waits_for", "n_ranks", "rank", "ms_per_step"} == set(finding["chain"][0])
    assert not CHINESE.search(finding["summary"] + finding["next_check"])


#: Runs the command as its script does, then tells what it loaded.
PROGRAM = """
import sys
from cluster_analysis.__main__ import run
try:
    run()
except SystemExit as stop:
    assert stop.code == 0, stop.code
import pyarrow as pa
unused = {"pandas", "distributed"}
loaded = sorted(unused & set(sys.modules))
print(loaded, pa.default_memory_pool().backend_name)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("scheduler", "files"), [("auto", "--insight"), ("processes", "--no-insight")])
def test_a_run_on_this_machine_imports_no_pandas_and_sets_no_memory_aside(
    slow_run: Path, tmp_path: Path, scheduler: str, files: str
) -> None:
    more = ("--output", tmp_path, "--quiet", files, "--scheduler", scheduler)
    done = called("-c", PROGRAM, slow_run, *more)
    assert done.stderr == b""
    assert done.stdout.decode().splitlines()[-1] == "[] system"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulated", "qwen3-4ranks-pt"])
def test_tables_and_findings_are_the_same_bytes_for_every_hash_seed(tmp_path: Path, name: str) -> None:
    # One step: dictionaries of several are joined, which drops values that stand twice.
    run = write_small_run(tmp_path / "run", steps=1) if name == "simulated" else real(name)
    argv = [str(run), "--no-report", "-q", "--output"]
    assert main([*argv, str(tmp_path / "here")]) == 0  # by the seed that Python drew for this process
    assert called("-m", "cluster_analysis", *argv, tmp_path / "there", PYTHONHASHSEED="1").returncode == 0
    here, there = digests(tmp_path / "here"), digests(tmp_path / "there")
    assert {"findings.json", "tables/matched.parquet", "tables/steps.parquet"} <= set(here)
    assert here == there


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("module", ["analysis", "collect", "hook", "simulate"])
def test_every_command_prints_its_completions(
    module: str, shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = __import__(f"cluster_{module}.cli", fromlist=["main"]).main
    monkeypatch.setattr(sys, "argv", [f"cluster-{module}", "--print-completion", shell])
    try:
        code = command() if module == "simulate" else command(sys.argv[1:])
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    assert (code or 0, printed.err) == (0, "")
    assert "version" in printed.out


def test_collect_says_what_a_bare_word_was_meant_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for word, option in (("hosts.yaml", "--inventory"), (str(tmp_path), "--like"), ("node[1-4]", "--hosts")):
        with pytest.raises(SystemExit, match="2"):
            collect([word])
        said = capsys.readouterr().err
        assert f"did you mean: cluster-collect {option} " in said
        assert len(said.splitlines()) <= 5
