"""Writes the reference of all commands and their man pages from their parsers.

python -m tools.renew_commands

docs/commands.md has a table for each group of options; cluster_run/man/ has a page a command, which pip puts
below share/man.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from argparse_manpage.manpage import Manpage

from cluster_act.options import make_parser as act
from cluster_analysis.cli import make_parser as analyse
from cluster_analysis.output_folder import INSIGHT_DATABASE_NAME, INSIGHT_TEXT_NAMES
from cluster_analysis.outputs.registry import FILES
from cluster_analysis.queries import make_parser as queries
from cluster_collect.arguments import make_parser as collect
from cluster_fleet.options import make_parser as fleet
from cluster_hook.cli import build_parser as hook
from cluster_run.version import VERSION
from cluster_simulate.options import build_parser as simulate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "commands.md"
MAN = ROOT / "cluster_run" / "man"
PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "cluster-act": act,
    "cluster-analyse": analyse,
    "cluster-collect": collect,
    "cluster-fleet": fleet,
    "cluster-hook": hook,
    "cluster-simulate": lambda: simulate("cluster-simulate"),
}
#: What a command is for, on its man page and in the reference.
PURPOSES = {
    "cluster-act": "say, and do, what is to be done about slow devices and hosts",
    "cluster-analyse": "name slow ranks, hosts and links of a run, and what they cost",
    "cluster-collect": "collect the profiler data of all hosts of a job over SSH",
    "cluster-fleet": "remember which devices and hosts are slow since when",
    "cluster-hook": "collect and analyse after every job of Slurm or Kubernetes",
    "cluster-simulate": "write a job with known faults",
}
_WIDTH = {"COLUMNS": "100", "SOURCE_DATE_EPOCH": "0"}


def made() -> Iterator[tuple[Path, str]]:
    """Return each file and what belongs into it."""
    with mock.patch.dict(os.environ, _WIDTH):
        yield PAGE, reference()
        for name in PARSERS:
            yield MAN / f"{name}.1", man_page(name)


def man_page(name: str) -> str:
    """Return the manual page of a command."""
    about = {
        "description": PURPOSES[name],
        "project_name": "cluster-profiler",
        "version": VERSION,
        "manual_title": "Cluster profiler",
        "date": VERSION,  # of the release: a day would make each build another
    }
    page = Manpage(_parser(name), about)
    # A line that begins with a quote would be taken for a macro.
    lines = (f"\\&{line}" if line.startswith("'") else line for line in str(page).splitlines())
    return "\n".join(line.rstrip() for line in lines) + "\n"


def reference() -> str:
    """Return the page of the documents."""
    lines = ["# All commands and options", "", "Made from the parsers by `make gold`."]
    for name in PARSERS:
        parser = _parser(name)
        lines += ["", f"## {name}", "", f"{PURPOSES[name].capitalize()}.", *_described(parser)]
        lines += _files() if name == "cluster-analyse" else ()
        for command, inner in (*_subcommands(parser), *_queries(name)):
            lines += ["", f"### {name} {command}", "", *_described(inner, inner.description or "")]
    return "\n".join(lines) + "\n"


def _files() -> Iterator[str]:
    """Return what is in the output."""
    yield from ("", "| in `cluster_analysis_output/` | is |", "| --- | --- |")
    yield from (f"| `{one.owned}` | {one.holds} |" for one in FILES)
    names = ", ".join(f"`{one}`" for one in INSIGHT_TEXT_NAMES)
    yield f"| {names}, or `{INSIGHT_DATABASE_NAME}` | for [MindStudio Insight](insight.md) |"


def _parser(name: str) -> argparse.ArgumentParser:
    parser = PARSERS[name]()
    parser.prog = name
    return parser


def _queries(name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Return the commands that a parser of their own reads."""
    return _subcommands(queries()) if name == "cluster-analyse" else iter(())


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _described(parser: argparse.ArgumentParser, purpose: str = "") -> Iterator[str]:
    """Return the lines of one parser: a table for each group, then its examples and exit codes."""
    if purpose:
        yield _escaped(" ".join(purpose.split()))
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        rows = [
            row
            for action in group._group_actions
            if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
            for row in _row(action, formatter)
        ]
        if rows:
            yield from ("", f"| {_title(group.title)} | meaning |", "| --- | --- |", *rows)
    if parser.epilog:
        yield from ("", "```text", *parser.epilog.strip("\n").splitlines(), "```")


def _title(title: str | None) -> str:
    return "options" if title in (None, "optional arguments") else str(title)


def _row(action: argparse.Action, formatter: argparse.HelpFormatter) -> Iterator[str]:
    if action.help == argparse.SUPPRESS:
        return
    said = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    name = ", ".join(action.option_strings)
    said = f"{name} {said}".strip() if name else said
    said = said.replace("|", "\\|")
    meaning = " ".join(formatter._expand_help(action).split()) if action.help else ""
    yield f"| `{said}` | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    for sign in ("|", "*", "<", "_", "["):
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    for path, text in made():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
