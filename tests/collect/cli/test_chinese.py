"""A Chinese run of the command: all that it says itself is Chinese, and what programs read stays as it is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cluster_collect
from cluster_run.manifest import read_manifest
from cluster_run.said.chinese import in_chinese, told

from .conftest import Hosts, run_collect

#: Two English words one after the other are a sentence; options, keys and what a command is given are none.
_SENTENCE = re.compile(r"(?<![\w/.=-])[A-Za-z][a-z']+,? [a-z']{2,}(?![\w/.=-])")
#: A command to try, and the names that a host has where the root is not.
_COMMAND = re.compile(r"(?:cluster-\w+|ssh) [^：，；。\n]*|中有 .*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def english_in(text: str) -> list[str]:
    """Return the lines with an English sentence."""
    lines = [
        _COMMAND.sub("", line.replace("become: sudo", "").replace("rank table", ""))
        for line in text.splitlines()
    ]
    return [line for line in lines if _SENTENCE.search(line)]


#: Errors that tell of other people's tricks, of our own mistakes, or of how an option is written.
_STAY_ENGLISH = {"HostileDataError", "AssertionError", "ArgumentTypeError", "ValueError", "SFTPError"}


def _shown(part: ast.expr) -> str:
    """Return a piece of a sentence: a value as 7, `where(name)` as a place, what may lack as nothing."""
    if isinstance(part, ast.FormattedValue):
        name = getattr(getattr(part.value, "func", None), "id", "")
        return "7: " if name == "where" else "" if isinstance(part.value, ast.IfExp) else "7"
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def sentences_of_errors() -> Iterator[tuple[str, str]]:
    """Return where an error or a failure is made, and what it says, with 7 for each value."""
    for path in sorted(Path(cluster_collect.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in _STAY_ENGLISH or not (name.endswith("Error") or name in ("wrong", "Failure")):
                continue
            for said in call.args[name == "Failure" :]:
                parts = said.values if isinstance(said, ast.JoinedStr) else [said]
                text = "".join(map(_shown, parts))
                if _SENTENCE.search(text):
                    yield f"{path.name}:{call.lineno}", text


def chinese(hosts: Hosts, *arguments: str) -> str:
    """Run the command in Chinese; return what it says."""
    result = hosts.collect("--lang", "zh", *arguments)
    assert _CHINESE.search(result.stdout + result.stderr)
    return result.stdout + result.stderr


def test_a_chinese_run_of_good_and_bad_hosts_says_no_english_sentence(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("denied", AuthorizedKeysFile="none")
    hosts.add("empty")
    hosts.entries[2]["profiler_root"] = str(hosts.directory / "nowhere")
    hosts.add("gone")
    hosts.entries[3]["port"] = 1
    hosts.add("changed")
    hosts.entries[4]["known_hosts"] = str(hosts.directory / "no_known_hosts")
    said = chinese(hosts, "--output", "run", "-v", "--attempts", "2")
    assert not english_in(said), "\n".join(english_in(said))
    assert "登录被拒绝" in said
    assert "没有该目录" in said
    assert "连接被拒绝" in said
    assert "5 台主机中 1 台完成" in said


def test_a_chinese_run_leaves_manifest_and_json_as_they_are(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("denied", AuthorizedKeysFile="none")
    result = hosts.collect("--lang", "zh", "--output", "run", "--json")
    manifest = read_manifest(hosts.directory / "run/manifest.json")
    assert "the login was refused" in manifest.hosts[1].reason
    assert not _CHINESE.search(result.stdout)
    assert json.loads(result.stdout)


@pytest.mark.parametrize("mode", ["--check", "--dry-run"])
def test_a_chinese_look_at_hosts_says_no_english_sentence(hosts: Hosts, mode: str) -> None:
    hosts.add("alpha")
    assert english_in(chinese(hosts, mode)) == []


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        ("version: 1\nhosts:\n  - {address: a, profiler_rot: /d}\n", "是否想写 'profiler_root'？"),
        ("version: 1\nhosts: [\n", "不是有效的 YAML"),
        ("version: 1\nhosts: []\n", "没有主机"),
        ("version: 1\nhosts:\n  - {address: 10, profiler_root: /d}\n", "应为文本"),
        ("version: 1\nhosts:\n  - {address: a}\n", "没有 'profiler_root'"),
    ],
)
def test_a_bad_inventory_is_told_in_chinese(tmp_path: Path, inventory: str, expected: str) -> None:
    (tmp_path / "hosts.yaml").write_text(inventory)
    result = run_collect(["--inventory", "hosts.yaml", "--lang", "zh"], tmp_path)
    assert expected in result.stderr
    assert english_in(result.stderr) == []


def test_every_error_of_a_collection_has_its_chinese() -> None:
    found = list(sentences_of_errors())
    assert len(found) > 100
    assert [one for one in found if not _CHINESE.search(in_chinese(one[1]))] == []


def test_names_stay_as_they_are_even_where_they_are_words() -> None:
    assert told("empty: the login was refused\n  → host: x", "zh") == "empty：登录被拒绝\n  → host: x"
    assert told("no such column: size", "zh") == "没有列 size"


def test_the_language_is_that_of_the_environment(tmp_path: Path) -> None:
    for variable, expected in (
        ("zh_CN.UTF-8", "主机清单不存在"),
        ("C.UTF-8", "the inventory does not exist"),
    ):
        environment = {"LC_ALL": variable, "PYTHONIOENCODING": "utf-8"}
        result = run_collect(["--inventory", "none.yaml"], tmp_path, environment)
        assert expected in result.stderr
