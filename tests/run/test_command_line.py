"""What the command lines of all commands have in common, completions of shells among it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands import ran
from tests.layers import ROOT
from tools.renew_commands import PARSERS


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


def completed_by_bash(command: str, *words: str) -> list[str]:
    """What bash offers for the last word after it has read what the command prints."""
    module = {"cluster-analyse": "cluster_analysis"}.get(command, command.replace("-", "_"))
    script = f"""source <({sys.executable} -m {module} --print-completion bash)
        COMP_WORDS=({" ".join((command, *words))}) COMP_CWORD={len(words)}
        $(complete -p {command} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {command} '{words[-1]}' {command}
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    return ran(["bash", "-c", script], check=True, cwd=ROOT).stdout.split()


@pytest.mark.parametrize("command", PARSERS)
def test_bash_completes_an_option(command: str) -> None:
    assert completed_by_bash(command, "--vers") == ["--version"]


@pytest.mark.parametrize(
    "words", [("cluster-collect", "--inventory"), ("cluster-analyse",), ("cluster-hook", "drain", "--spool")]
)
def test_bash_completes_names_of_files_where_a_path_is_meant(words: tuple[str, ...]) -> None:
    assert set(completed_by_bash(*words, "READ")) == {"README.md", "README.zh.md"}
