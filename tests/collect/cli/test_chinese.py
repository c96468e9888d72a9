"""A Chinese run of the command: all that it says itself is Chinese, and what programs read stays as it is."""

from __future__ import annotations

import json
import re
from importlib import import_module, resources
from pathlib import Path
from types import ModuleType

import pytest

import cluster_act
import cluster_analysis
import cluster_collect
import cluster_fleet
import cluster_hook
import cluster_simulate
import cluster_tell
from cluster_analysis.cli import main as analyse
from cluster_run.manifest import read_manifest
from cluster_run.said.chinese import in_chinese, translated
from cluster_simulate.cli import main as simulate
from tests.chinese import (
    CHINESE,
    INSTEAD,
    TERMS,
    english_in,
    lines_of_documents,
    pairs_of_texts,
    sentences_of,
)
from tests.commands import ran_here

from .conftest import Hosts, run_collect

IN_CHINA = {"LC_ALL": "zh_CN.UTF-8"}


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
        ("version: 1\nhosts:\n  - {address: [10], profiler_root: /d}\n", "应为文本"),
        ("version: 1\nhosts:\n  - {address: a}\n", "没有 'profiler_root'"),
    ],
)
def test_a_bad_inventory_is_told_in_chinese(tmp_path: Path, inventory: str, expected: str) -> None:
    (tmp_path / "hosts.yaml").write_text(inventory)
    result = run_collect(["--inventory", "hosts.yaml", "--lang", "zh"], tmp_path)
    assert expected in result.stderr
    assert english_in(result.stderr) == []


@pytest.mark.parametrize(
    "package",
    [
        *(cluster_act, cluster_analysis, cluster_collect, cluster_fleet),
        *(cluster_hook, cluster_simulate, cluster_tell),
    ],
)
def test_every_error_and_remark_of_a_command_has_its_chinese(package: ModuleType) -> None:
    found = list(sentences_of(package))
    assert len(found) > 10
    translated = [(where, in_chinese(said)) for where, said in found]
    assert [one for one in translated if english_in(one[1])] == []


@pytest.mark.parametrize(
    ("module", "given", "expected"),
    [
        ("cluster_analysis", ["nowhere"], "cluster-analyse: nowhere：没有该目录\n"),
        ("cluster_analysis", ["report", "nowhere"], "tables/，有这些就够了）\n"),
        ("cluster_simulate", ["out", "--ep", "3"], "--dp 4 不能被 --ep 3 整除（专家分布在数据并行的卡上）\n"),
        (
            "cluster_fleet",
            ["status", "--db", "none.db"],
            "none.db：没有该数据库（cluster-fleet add RUN 会建立）\n",
        ),
        (
            "cluster_hook",
            ["drain", "--spool", "none"],
            "cluster-hook: none：没有该 spool（deploy/slurm/install_epilog.sh 会建立）\n",
        ),
        (
            "cluster_act",
            ["--probe", "node017", "node018:5", "--probe-command", "work"],
            "'node017' 不是设备（请写成 node017:5 的形式）\n",
        ),
    ],
)
def test_what_ends_a_command_is_chinese_where_the_environment_is(
    module: str, given: list[str], expected: str, tmp_path: Path
) -> None:
    ended = ran_here(import_module(f"{module}.cli").main, given, IN_CHINA, tmp_path)
    assert ended.stderr.endswith(expected)
    assert english_in(ended.stderr) == []


@pytest.mark.slow
def test_a_job_is_simulated_and_analysed_without_an_english_sentence(tmp_path: Path) -> None:
    job = ["run", "--tp=1", "--pp=1", "--dp=4", "--scenario=slow_rank:1.5@1"]
    simulated = ran_here(simulate, job, IN_CHINA, tmp_path)
    assert "run：4 张卡，每步 " in simulated.stdout
    (tmp_path / "run/cluster.db").touch()
    ended = ran_here(analyse, ["run", "--json"], IN_CHINA, tmp_path)
    assert "在删除 run/cluster.db 之前" in ended.stderr
    assert english_in(simulated.stdout + ended.stderr) == []


def test_steps_are_counted_alike_in_all_messages() -> None:
    said = resources.files("cluster_run.said").joinpath("chinese.json").read_text("utf-8")
    assert re.findall(r'[^"]*(?<!每)步 \{[^"]*', said) == []


@pytest.mark.parametrize(
    "said",
    [
        "its capture began 3.4 s after the others': the same number was another iteration there",
        "its collectives ended 0.25 s before those of the others of the same numbers, which is 2 steps: "
        "these are other iterations",
        "run1: in use by process 12 on node01 since 2026-01-01 12:00:01",
        "several jobs wait for captures here: Slurm job 12; a job without a name",
        "the job llama is not here, but others are: Slurm job 12; Slurm job 13",
        "left out: 2 of 3 workers (tcp://h:5, tcp://h:6): runs Python 3.10.1, and here is 3.11.2: start it "
        "with the same Python",
        "left out: 1 of 3 workers (tcp://h:5): does not see /d (No such file or directory): workers must see "
        "the run under the same path as here",
        "not a scenario: 'slow_link@5': a link has two ends",
        "device 5 of node01",
    ],
)
def test_values_of_any_form_are_told_in_chinese(said: str) -> None:
    chinese = in_chinese(said)
    assert CHINESE.search(chinese)
    assert not re.search(r"\b(?:after|before|process|others|jobs?|workers|device)\b", chinese)
    assert english_in(chinese) == []


@pytest.mark.parametrize("word", INSTEAD)
def test_a_thing_has_one_name_in_all_that_is_chinese(word: str) -> None:
    said = (*(chinese for _, chinese in pairs_of_texts()), *lines_of_documents())
    assert [one for one in said if CHINESE.search(one) and re.search(word, one)] == [], INSTEAD[word]


@pytest.mark.parametrize("term", TERMS)
def test_a_word_of_the_field_is_the_same_wherever_it_is_said(term: str) -> None:
    said = [pair for pair in pairs_of_texts() if re.search(term, pair[0], re.IGNORECASE)]
    assert said
    assert [pair for pair in said if not re.search(TERMS[term], pair[1])] == []


def test_both_languages_say_the_same_numbers() -> None:
    def numbers(text: str) -> list[str]:
        return sorted(re.findall(r"(?<![\w:-])\d+(?:\.\d+)?", re.sub(r"\{[^}]*\}", "", text)))

    spelled = {"Quartile 1", "Quartile 3", "invalid utf-8{where}"}
    assert [
        pair
        for pair in pairs_of_texts()
        if pair[0] not in spelled and not pair[0].endswith("rank 0 of 1")
        if numbers(pair[0]) != numbers(pair[1])
    ] == []


@pytest.mark.parametrize(
    "wrong",
    [
        r"[一-鿿][,;:?!(]|[,;:!?)][一-鿿]",
        r"[一-鿿] +[一-鿿]",
        r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9%][一-鿿]",
        r"[一-鿿`] [，。；：、（）？！]|[，。；：、（）？！] [一-鿿]",
        r"“[^”]*$|\"[一-鿿]|[一-鿿]\"",
    ],
)
def test_marks_of_chinese_are_wide_and_a_blank_stands_just_where_latin_meets_it(wrong: str) -> None:
    said = [*(chinese for _, chinese in pairs_of_texts()), *lines_of_documents()]
    assert [one for one in said if re.search(wrong, re.sub(r"\{[^}]*\}|@组", "@", one))] == []


def test_each_reason_of_several_hosts_is_chinese() -> None:
    held = "held by the capture live-1"
    assert (
        in_chinese(f"n1: /a: {held}; n2: /b: {held}")
        == "n1：/a：被采集 live-1 占用；n2：/b：被采集 live-1 占用"
    )


def test_no_template_begins_with_a_name_before_a_colon_which_is_split_off_anyway() -> None:
    # With it, only the last of a list of such sentences would be known.
    text = resources.files("cluster_run.said").joinpath("chinese.json").read_text("utf-8")
    assert re.findall(r'"(\{\w+\}): [^\n]*": "\1：', text) == []


def test_names_stay_as_they_are_even_where_they_are_words() -> None:
    assert translated("empty: the login was refused\n  → host: x", "zh") == "empty：登录被拒绝\n  → host: x"
    assert translated("no such column: size", "zh") == "没有列 size"


def test_a_quoted_text_of_many_parentheses_stays_as_it_is() -> None:
    text = "a" + " (b)" * 1200
    assert in_chinese(text) == text


def test_the_language_is_that_of_the_environment(tmp_path: Path) -> None:
    for variable, expected in (
        ("zh_CN.UTF-8", "主机清单不存在"),
        ("C.UTF-8", "the inventory does not exist"),
    ):
        environment = {"LC_ALL": variable, "PYTHONIOENCODING": "utf-8"}
        result = run_collect(["--inventory", "none.yaml"], tmp_path, environment)
        assert expected in result.stderr
