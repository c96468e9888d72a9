from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

import pytest

from cluster_collect import arguments as collect_arguments
from cluster_hook.cli import build_parser, main, split_script_arguments
from cluster_hook.options import (
    follow_options,
    forwarded_tell_arguments,
    forwarded_work_arguments,
    tell_options,
)
from cluster_run.errors import UsageError
from tests.commands import program, ran

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["t.sh"], ["t.sh"]),
        (["t.sh", "--nodes", "2"], ["--nodes", "2", "t.sh"]),
        (["t.sh", "--", "a", "--b"], ["t.sh", "a", "--b"]),
        (["t.sh", "-N2", "--", "a", "--", "b"], ["-N2", "t.sh", "a", "--", "b"]),
        (["--profile-dir", "p", "t.sh", "-N2"], ["-N2", "t.sh"]),
        (["--profile-dir", "p", "--wrap", "a -b", "-N2"], ["--wrap", "a -b", "-N2"]),
        (["--wrap=a --what columns"], ["--wrap=a --what columns"]),
        (["t.sh", "--deadline", "2020-01-01"], ["--deadline", "2020-01-01", "t.sh"]),
    ],
)
def test_sbatch_gets_its_options_and_the_script_its_arguments(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    passed_on: list[str],
) -> None:
    program(tmp_path / "sbatch", "printf '%s\\n' \"$@\" >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert main(["slurm-submit", *given]) == 1
    assert capsys.readouterr().err.splitlines()[:-1] == ["--parsable", *passed_on]


def test_only_slurm_submit_has_a_script() -> None:
    assert split_script_arguments(["drain", "--", "x"]) == (["drain", "--", "x"], ())


@pytest.mark.parametrize(
    "argv",
    [
        ["drain", "--at-once", "0"],
        ["drain", "--retry-after", "-1"],
        ["drain", "--keep", "inf"],
        ["drain", "--spo", "x"],
        ["sweep"],
        ["slurm-post"],
        ["slurm-submit"],
        [],
        ["none-such"],
    ],
)
def test_a_command_line_that_cannot_be_meant_is_usage(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2


def test_the_options_for_another_process_say_the_same_and_hold_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTER_HOOK_WEBHOOK_URL", "https://chat.example/s3cret")
    (tmp_path / "site.yaml").write_text("defaults: {user: ada}")
    (tmp_path / "webhook").write_text("https://chat.example/s3cret")
    monkeypatch.chdir(tmp_path)
    given = ["slurm-post", "--slurm-job=1", "--scheduler=srun", "--dask-interface=ib0", "--fail-on=critical"]
    given += ["--what=*.db", "--what=*.csv", "--host-defaults=site.yaml", "--deadline=7", "--show-addresses"]
    given += ["--keep-raw=suspects", "--collect-arg=--jobs=3"]
    given += ["--tell=never", "--webhook-file=webhook", "--webhook-format=slack", "--prometheus-dir=."]
    parsed = build_parser().parse_args(given)
    forwarded = (*forwarded_work_arguments(parsed), *forwarded_tell_arguments(parsed))
    assert "s3cret" not in " ".join(forwarded)
    monkeypatch.chdir("/")
    again = build_parser().parse_args(["slurm-post", "--slurm-job=1", *forwarded])
    options = follow_options(again, has_nodes=True)
    assert options.what == ("*.db", "*.csv")
    assert (options.keep_raw, options.collect_more) == ("suspects", ("--jobs=3",))
    assert options.host_defaults == {"user": "ada"}
    assert (options.scheduler, options.deadline_s) == ("srun", 7)
    assert options.shows_addresses
    assert tell_options(again).when == "never"
    assert tell_options(again).webhook is not None
    assert tell_options(again).prometheus_dir == tmp_path


def test_a_sweep_keeps_raw_files_of_suspects_only_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", "--profiles=p", "--results=r"]
    assert build_parser().parse_args(sweep).keep_raw == ""
    assert build_parser().parse_args([*sweep, "--keep-raw=suspects"]).keep_raw == "suspects"
    with pytest.raises(SystemExit):
        build_parser().parse_args([*sweep, "--keep-raw=0-7"])
    said = capsys.readouterr().err
    assert "invalid choice: '0-7' (choose from 'suspects')" in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--scheduler=slrum"], "unknown scheduler"),
        (["--scheduler=http://x"], "unknown scheduler"),
        (["--dask-interface=ib0"], "--scheduler srun only"),
        (["--what=full", "--what=columns"], "globs, or one of them and globs that narrow it"),
        (["--keep-raw=1-"], "--keep-raw: not a list of numbers"),
        (["--collect-arg=--bandwith=1M"], "unrecognized arguments: --bandwith=1M"),
        (["--host-defaults=site.yaml"], "site.yaml:1: unknown key 'usr' in defaults (did you mean 'user'?)"),
        (["--profile-dir=prof/%q"], "unknown pattern"),
        (["--profile-dir=a,b"], "cannot hold this path"),
    ],
)
def test_slurm_submit_refuses_a_mistake_before_it_submits_anything(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    why: str,
) -> None:
    (tmp_path / "site.yaml").write_text("defaults: {usr: ada}")
    program(tmp_path / "sbatch", "touch submitted")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    try:
        code: object = main(["slurm-submit", *options, "train.sbatch"])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert (code, said.out) == (1 if "site.yaml" in why else 2, "")
    assert why in said.err
    assert len(said.err.splitlines()) <= 2, "what is wrong and what to do, without a page of usage"
    assert not (tmp_path / "submitted").exists()


def test_a_drain_cannot_start_dask_on_nodes_that_it_does_not_have() -> None:
    parsed = build_parser().parse_args(["drain", "--scheduler=srun"])
    with pytest.raises(UsageError, match="slurm-submit"):
        follow_options(parsed)


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return every option of a parser and of its subcommands that its help shows."""
    found = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                found |= options_of(one)
        elif action.help != argparse.SUPPRESS:
            found |= set(action.option_strings)
    return found


def test_every_option_that_a_message_of_the_hook_tells_people_to_use_exists() -> None:
    known = options_of(build_parser()) | options_of(collect_arguments.make_parser())
    told: set[str] = set()
    for path in (REPOSITORY / "cluster_hook").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(("Error", "Submission")):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                told |= {word for text in map(str, texts) for word in re.findall(r"--[a-z][a-z-]+", text)}
    assert len(told) > 5
    assert told - known - {"--comment"} == set(), "neither ours nor sbatch's"


def test_a_mistake_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    ended = ran([sys.executable, "-m", "cluster_hook", "drain", f"--spool={tmp_path}/none"])
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "(deploy/slurm/install_epilog.sh makes it)" in ended.stderr


def test_a_webhook_file_that_is_missing_is_said_before_anything_is_submitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["slurm-submit", f"--webhook-file={tmp_path}/none", "t.sh"]) == 1
    assert "none: the webhook's address cannot be read: No such file or directory" in capsys.readouterr().err
