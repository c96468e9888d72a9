"""What the command lines of all commands have in common, completions of shells among it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands import ran
from tools.renew_completions import PARSERS, completions


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("cluster_analysis", [""]),
        ("cluster_analysis", ["run", "--output", ""]),
        ("cluster_analysis", ["run", "--baseline", ""]),
        ("cluster_collect", ["--inventory", "hosts.yaml", "--output", ""]),
        ("cluster_collect", ["--inventory", ""]),
        ("cluster_simulate", [""]),
        ("cluster_hook", ["drain", "--spool", ""]),
    ],
)
def test_an_empty_path_is_wrong_usage_and_never_the_directory_one_is_in(
    module: str, argv: list[str], tmp_path: Path
) -> None:
    ended = ran([sys.executable, "-m", module, *argv], cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.endswith("an empty path: is a variable not set?\n")
    assert not list(tmp_path.iterdir())


def test_completions_are_those_of_the_parsers():
    stale = [str(path) for path, text in completions() if path.read_text("utf-8") != text]

    assert stale == [], "make gold renews them"


@pytest.mark.parametrize("command", PARSERS)
def test_bash_completes_an_option(command):
    path = next(path for path, _ in completions() if path.name == command)
    script = f"""source {path}
        COMP_WORDS=({command} --vers) COMP_CWORD=1 COMP_LINE='{command} --vers' COMP_POINT=99
        $(complete -p {command} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {command} --vers {command}
        echo "${{COMPREPLY[@]}}" """
    done = ran(["bash", "-c", script], check=True)

    assert "--version" in done.stdout.split()
