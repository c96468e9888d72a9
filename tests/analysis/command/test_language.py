"""The language of the result on stdout: asked for, or that of the environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.runs import write_small_run

CHINESE = re.compile("[\u4e00-\u9fff]")
#: Words of English prose; names of kinds, files, programs and metrics stay as they are.
ENGLISH = re.compile(r"\b(the|is|are|of|and|with|its|slower|peers|every|step|saved)\b")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_run(tmp_path_factory.mktemp("language") / "run")


def said(run: Path, *arguments: str, **environment: str) -> str:
    names = ("LC_ALL", "LC_MESSAGES", "LANG", "PYTHONIOENCODING", "PYTHONUTF8")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-m", "cluster_analysis", str(run), "--no-report", "--quiet", *arguments],
        capture_output=True,
        timeout=280,
        check=True,
        env={**kept, "PYTHONIOENCODING": "utf-8", **environment},
    )
    return done.stdout.decode("utf-8")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_chinese_that_is_asked_for_holds_no_english_sentence(run: Path, form: str) -> None:
    # Paths are nobody's language.
    text = "\n".join(
        line for line in said(run, "--lang", "zh", "--format", form).splitlines() if "pytest" not in line
    )
    assert "慢卡 3" in text
    assert not ENGLISH.search(text), ENGLISH.search(text)


def test_the_environment_says_the_language_and_the_option_overrules_it(run: Path) -> None:
    assert CHINESE.search(said(run, LANG="zh_CN.UTF-8"))
    assert not CHINESE.search(said(run, LANG="en_US.UTF-8"))
    assert not CHINESE.search(said(run, LANG="zh_CN.UTF-8", LC_ALL="C.UTF-8"))
    assert not CHINESE.search(said(run, "--lang", "en", LANG="zh_CN.UTF-8"))
    assert not CHINESE.search(said(run, LANG="zh_CN.UTF-8", PYTHONIOENCODING="ascii"))


def test_json_holds_facts_and_english_sentences_whatever_the_language(run: Path) -> None:
    document = json.loads(said(run, "--lang", "zh", "--format", "json"))
    (finding,) = [one for one in document["findings"] if one["kind"] == "slow_rank"]
    assert finding["facts"][0]["kind"] == "rank_computing"
    assert finding["separable"] is True
    assert {"group", "waits_for", "n_ranks", "rank", "ms_per_step"} == set(finding["chain"][0])
    assert not CHINESE.search(finding["summary"] + finding["next_check"])
