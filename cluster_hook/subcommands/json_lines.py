"""Output of the subcommands: with `--json` one JSON object a line, each with its schema."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Literal

from cluster_run.command_line import language_of
from cluster_run.said.chinese import translated
from cluster_run.standard_streams import as_log, write_result
from cluster_tell.outcome import Outcome, outcome_document

#: What a line is about, as its schema names it.
About = Literal["check", "node-collected", "request", "submission", "swept"]


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`; `what` there is a line of."""
    parser.add_argument("--json", action="store_true", help=f"print JSON, one line {what}")


def print_line(arguments: argparse.Namespace, text: str, about: About, /, **values: object) -> None:
    """Print one line: the text in the language that is asked for, or with `--json` the values."""
    said = translated(text, language_of(arguments.lang, sys.stdout))
    line = json.dumps({"schema": f"cluster-hook-{about}/1", **values}) if arguments.json else said
    write_result(line + "\n")


def print_ended(
    arguments: argparse.Namespace, about: About, outcome: Outcome | None, /, state: str, text: str, **of: str
) -> None:
    """Print how one request or job ended, into a log; `of` is its name, by the key that it has in JSON."""
    document, said, language = None, text, language_of(arguments.lang, sys.stdout)
    if outcome is not None:
        document = outcome_document(outcome)
        said = text.replace(outcome.line, outcome.line_in(language))
    (name,) = of.values()
    with as_log():
        values = {**of, "state": state, "text": text, "outcome": document}
        print_line(arguments, f"{name} {state}: {translated(said, language)}", about, **values)


def say_on_stderr(arguments: argparse.Namespace, text: str) -> None:
    """Say something that is no result, in the language that is asked for."""
    said = translated(text, language_of(arguments.lang, sys.stderr))
    print(f"cluster-hook: {said}", file=sys.stderr, flush=True)


def print_trouble(arguments: argparse.Namespace, of_what: str, trouble: str) -> None:
    """Say what went wrong with a message or metrics, if anything."""
    if trouble:
        say_on_stderr(arguments, f"{of_what}: {trouble}")
