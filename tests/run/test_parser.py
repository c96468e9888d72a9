"""Help and usage errors of all commands in the language that is asked for."""

from __future__ import annotations

import argparse
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_analysis.queries import make_parser as queries
from cluster_collect.live.options import LiveOptions
from cluster_collect.spec import CollectOptions
from cluster_run.command_line import Parser
from cluster_run.said.chinese import help_texts
from cluster_simulate.job.spec import Healthy, JobSpec
from tests.chinese import CHINESE, english_in
from tests.commands import ran
from tests.layers import ROOT
from tools.renew_commands import PARSERS

#: A command, its options and what it is given: part of no sentence.
_CALL = re.compile(r"(?m)^ *cluster-.*$|^用法：(?:.*\n)+?(?=\n)|^ {2}\w+:.*?  ")


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All parsers, those of subcommands as well."""
    for make in (*PARSERS.values(), queries):
        yield from _with_inner(make())


def _with_inner(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _with_inner(one)


def test_every_option_is_read_by_somebody() -> None:
    texts = [path.read_text("utf-8") for path in ROOT.glob("cluster_*/**/*.py")]
    read = set(re.findall(r"\b(?:arguments|given)\.(\w+)", "".join(texts)))
    made = {
        name for kind in (CollectOptions, LiveOptions, JobSpec, Healthy) for name in kind.__dataclass_fields__
    }
    asked_for = {action.dest: name for name, parser in parsers() for action in parser._actions}
    by_argparse = {"help", "version", "print_completion", argparse.SUPPRESS}
    assert {name: asked_for[name] for name in set(asked_for) - read - made - by_argparse} == {}


def asked(parser: argparse.ArgumentParser, *arguments: str) -> None:
    """Call a parser with arguments after which it ends."""
    with pytest.raises(SystemExit):
        parser.parse_args(arguments)


@pytest.mark.parametrize("name", sorted({name for name, _ in parsers()}))
def test_chinese_help_holds_no_english_sentence_and_the_same_options(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    texts = []
    for language in ("en", "zh"):
        parser = next(one for other, one in parsers() if other == name)
        asked(parser, "--help", "--lang", language)
        texts.append(capsys.readouterr().out)
    english, chinese = texts
    assert english_in(_CALL.sub("", chinese)) == []
    assert set(re.findall(r"--[a-z-]+", english)) == set(re.findall(r"--[a-z-]+", chinese))


def test_a_language_may_stand_in_front_of_a_subcommand_and_behind_it() -> None:
    takes = {name: "--lang" in parser._option_string_actions for name, parser in parsers()}
    outer = [name for name, one in takes.items() if one]
    assert [
        name for name, one in takes.items() if not one and name.startswith(tuple(f"{o} " for o in outer))
    ] == []


def test_the_chinese_of_help_is_that_of_what_parsers_say_and_of_nothing_else() -> None:
    said: set[str | None] = set()
    for _, parser in parsers():
        said |= {parser.description, parser.epilog, *(one.title for one in parser._action_groups)}
        for action in parser._actions:
            inner = action._choices_actions if isinstance(action, argparse._SubParsersAction) else ()
            said |= {one.help for one in (action, *inner)}
    assert said - {None, argparse.SUPPRESS} == set(help_texts())


@pytest.mark.parametrize("name", sorted({name for name, _ in parsers()}))
def test_the_beginning_of_an_option_is_none(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = next(one for other, one in parsers() if other == name)
    for action in parser._actions:
        action.required = False
    _, unknown = parser.parse_known_args(["--hel", "--vers"])
    assert unknown == ["--hel", "--vers"]


def test_chinese_help_is_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked(PARSERS["cluster-collect"](), "--help", "--lang=zh")
    described = [one for one in capsys.readouterr().out.splitlines() if CHINESE.search(one)]
    assert len(described) > 50
    wide = [sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in line) for line in described]
    assert max(wide) <= 80


def test_the_environment_chooses_the_language_of_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    asked(PARSERS["cluster-hook"](), "slurm-post", "--help")
    assert capsys.readouterr().out.startswith("用法：cluster-hook slurm-post")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--nonsense",), "无法识别的参数：--nonsense"),
        (("--lang",), "参数 --lang：需要一个值"),
        (("--live", "0"), "参数 --live：'0' 不是从 1 起的整数"),
        (("--compression", "rar"), "无效的取值 'rar'"),
        (("--inventory", ""), "路径为空"),
    ],
)
def test_wrong_usage_is_told_in_chinese(
    arguments: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    asked(PARSERS["cluster-collect"](), *arguments)
    said = capsys.readouterr().err
    assert told in said
    assert "错误：" in said


@pytest.mark.many
@pytest.mark.parametrize(
    "arguments",
    [
        ("hosts.yaml",),
        (),
        ("--hosts", "a", "--what", "colum"),
        ("--hosts", "a", "--what", "full,columns"),
        ("--hosts", "a", "--ranks", "suspects"),
        ("--hosts", "a", "--findings", "f.json"),
        ("--hosts", "a", "--keep-raw", "suspects", "--what", "columns"),
        ("--hosts", "a", "--keep-raw", "0", "--what", "full"),
    ],
    ids=" ".join,
)
def test_a_collection_that_cannot_be_meant_is_refused_in_chinese(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    call = [sys.executable, "-m", "cluster_collect", *arguments, "--lang", "zh"]
    done = ran(call, cwd=tmp_path, env={**os.environ, "LC_ALL": "C.UTF-8"}, encoding="utf-8")
    said = done.stderr.partition("错误：")[2]
    assert done.returncode == 2
    assert CHINESE.search(said)
    assert english_in(re.sub(r"cluster-\S+|RUN|FILE|NODESET", "", said)) == []


@pytest.mark.parametrize(
    ("command", "call"), [("cluster-hook", ("slurm-post",)), ("cluster-fleet", ("status", "--db", "f.db"))]
)
def test_the_language_stands_before_or_behind_a_subcommand(command: str, call: tuple[str, ...]) -> None:
    make = PARSERS[command]
    assert make().parse_args(("--lang", "zh", *call)).lang == "zh"
    assert make().parse_args((*call, "--lang", "zh")).lang == "zh"
    assert make().parse_args(("--lang", "en", *call, "--lang", "zh")).lang == "zh"
    assert make().parse_args(call).lang is None


def test_a_parser_that_is_not_asked_for_chinese_is_as_python_makes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    texts = []
    for make in (Parser, argparse.ArgumentParser):
        parser = make(prog="one", description="Does it.")
        parser.add_argument("--lang", help="language")
        asked(parser, "--help")
        asked(parser, "--no")
        texts.append(capsys.readouterr())
    assert texts[0] == texts[1]
