"""Writes the completions of shells for all commands into cluster_run/completions, from their parsers.

python -m tools.renew_completions

`--print-completion` prints them, so that no command needs a library for it. pip puts those of bash and zsh
where shells look.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import shtab

from cluster_act.options import make_parser as act
from cluster_analysis.cli import make_parser as analyse
from cluster_collect.arguments import make_parser as collect
from cluster_fleet.options import make_parser as fleet
from cluster_hook.cli import build_parser as hook
from cluster_run.command_line import named_path
from cluster_simulate.options import build_parser as simulate

FOLDER = Path(__file__).parents[1] / "cluster_run" / "completions"
PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "cluster-act": act,
    "cluster-analyse": analyse,
    "cluster-collect": collect,
    "cluster-fleet": fleet,
    "cluster-hook": hook,
    "cluster-simulate": lambda: simulate("cluster-simulate"),
}


def completions() -> Iterator[tuple[Path, str]]:
    """Return each file and what belongs into it."""
    for name, make in PARSERS.items():
        for shell, file in (("bash", f"bash/{name}"), ("zsh", f"zsh/_{name}"), ("fish", f"fish/{name}")):
            parser = make()
            parser.prog = name
            parser.usage = None  # shtab shows none
            _complete_paths(parser)
            yield FOLDER / file, shtab.complete(parser, shell)


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Have file names completed where an option takes one."""
    for action in parser._actions:
        if action.type is named_path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_paths(inner)


if __name__ == "__main__":
    for path, text in completions():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
