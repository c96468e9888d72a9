"""Output of the subcommands: with `--json` one JSON object a line, each with its schema."""

from __future__ import annotations

import argparse
import json
import sys

from cluster_run.standard_streams import write_result

SCHEMAS = {
    "check": "cluster-hook-check/1",
    "node-collected": "cluster-hook-node-collected/1",
    "request": "cluster-hook-request/1",
    "submission": "cluster-hook-submission/1",
    "swept": "cluster-hook-swept/1",
}


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`; `what` there is a line of."""
    parser.add_argument("--json", action="store_true", help=f"print JSON, one line {what}")


def print_line(arguments: argparse.Namespace, text: str, schema: str, /, **values: object) -> None:
    """Print one line: the text, or with `--json` the values."""
    line = json.dumps({"schema": SCHEMAS[schema], **values}) if arguments.json else text
    write_result(line + "\n")


def print_trouble(of_what: str, trouble: str) -> None:
    """Say what went wrong with a message or metrics, if anything."""
    if trouble:
        print(f"cluster-hook: {of_what}: {trouble}", file=sys.stderr, flush=True)
