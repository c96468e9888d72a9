"""Writes the completions of shells for all commands into deploy/completions, from their parsers.

python -m tools.renew_completions

pip puts those of bash and zsh where shells look.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import shtab

from cluster_analysis.cli import make_parser as analyse
from cluster_collect.arguments import make_parser as collect
from cluster_hook.cli import build_parser as hook
from cluster_run.command_line import complete_paths
from cluster_simulate.options import build_parser as simulate

FOLDER = Path(__file__).parents[1] / "deploy" / "completions"
PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "cluster-analyse": analyse,
    "cluster-collect": collect,
    "cluster-hook": hook,
    "cluster-simulate": lambda: simulate("cluster-simulate"),
}


def completions() -> Iterator[tuple[Path, str]]:
    """Return each file and what belongs into it."""
    for name, make in PARSERS.items():
        for shell, file in (("bash", f"bash/{name}"), ("zsh", f"zsh/_{name}")):
            parser = make()
            parser.prog = name
            complete_paths(parser, shtab.FILE)
            yield FOLDER / file, shtab.complete(parser, shell)


if __name__ == "__main__":
    for path, text in completions():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
