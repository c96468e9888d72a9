"""What makes a shell complete the options of a command: shtab writes it from the command's parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import shtab


def completions(parser: argparse.ArgumentParser, shell: str, of_path: Callable[[str], Path]) -> str:
    """Return what `shell` has to read; an argument of the type `of_path` is completed with names of files."""
    _complete_paths(parser, of_path)
    return shtab.complete(parser, shell)


def _complete_paths(parser: argparse.ArgumentParser, of_path: Callable[[str], Path]) -> None:
    for action in parser._actions:
        if action.type is of_path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner, of_path)
