"""A Chinese run of the command: all that it says itself is Chinese, and what programs read stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

import cluster_collect
import cluster_live
from cluster_run.manifest import read_manifest
from cluster_run.said.chinese import in_chinese, translated
from tests.chinese import CHINESE, english_in, sentences_of

from .conftest import Hosts, run_collect


def chinese(hosts: Hosts, *arguments: str) -> str:
    """Run the command in Chinese; return what it says."""
    result = hosts.collect("--lang", "zh", *arguments)
    assert CHINESE.search(result.stdout + result.stderr)
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
    assert not CHINESE.search(result.stdout)
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


@pytest.mark.parametrize("package", [cluster_collect, cluster_live])
def test_every_error_and_remark_of_a_collection_has_its_chinese(package: ModuleType) -> None:
    found = list(sentences_of(package))
    assert len(found) > 40
    translated = [(where, in_chinese(said)) for where, said in found]
    assert [one for one in translated if not CHINESE.search(one[1]) or english_in(one[1])] == []


def test_names_stay_as_they_are_even_where_they_are_words() -> None:
    assert translated("empty: the login was refused\n  → host: x", "zh") == "empty：登录被拒绝\n  → host: x"
    assert translated("no such column: size", "zh") == "没有列 size"


def test_the_language_is_that_of_the_environment(tmp_path: Path) -> None:
    for variable, expected in (
        ("zh_CN.UTF-8", "主机清单不存在"),
        ("C.UTF-8", "the inventory does not exist"),
    ):
        environment = {"LC_ALL": variable, "PYTHONIOENCODING": "utf-8"}
        result = run_collect(["--inventory", "none.yaml"], tmp_path, environment)
        assert expected in result.stderr
