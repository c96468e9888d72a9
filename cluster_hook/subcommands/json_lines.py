"""Output of the subcommands: with `--json` one JSON object a line, each with its schema."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Literal

from cluster_run.standard_streams import write_result

#: What a line is about, as its schema names it.
About = Literal["check", "node-collected", "request", "submission", "swept"]


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`; `what` there is a line of."""
    parser.add_argument("--json", action="store_true", help=f"print JSON, one line {what}")


def print_line(arguments: argparse.Namespace, text: str, about: About, /, **values: object) -> None:
    """Print one line: the text, or with `--json` the values."""
    line = json.dumps({"schema": f"cluster-hook-{about}/1", **values}) if arguments.json else text
    write_result(line + "\n")


def print_trouble(of_what: str, trouble: str) -> None:
    """Say what went wrong with a message or metrics, if anything."""
    if trouble:
        print(f"cluster-hook: {of_what}: {trouble}", file=sys.stderr, flush=True)
