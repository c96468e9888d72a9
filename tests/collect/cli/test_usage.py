"""Command lines that cannot be meant, and what those that can be meant become."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from cluster_collect.arguments import parse_arguments
from cluster_collect.cli import main
from cluster_collect.spec import CollectOptions
from cluster_run.errors import InputError
from cluster_run.ids import parse_size
from tests.commands import ran

from .conftest import run_collect


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--inventory"],
        ["--inventory", "h.yaml", "--no-such-option"],
        ["--inventory", "h.yaml", "--inv", "x"],
        ["--inventory", "h.yaml", "--jobs", "0"],
        ["--inventory", "h.yaml", "--jobs", "many"],
        ["--inventory", "h.yaml", "--bandwidth", "fast"],
        ["--inventory", "h.yaml", "--connect-deadline", "0"],
        ["--inventory", "h.yaml", "--connect-deadline", "nan"],
        ["--inventory", "h.yaml", "--dry-run", "--check"],
        ["--inventory", "h.yaml", "-v", "-q"],
        ["--inventory", "h.yaml", "--what"],
        ["--inventory", "h.yaml", "--what", "full,analysis"],
        ["--inventory", "h.yaml", "--since", "yesterday"],
        ["--inventory", "h.yaml", "--set", "port"],
        ["--inventory", "h.yaml", "unexpected"],
    ],
)
def test_wrong_usage_is_exit_code_2_before_anything_is_done(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: cluster-collect" in captured.err


@pytest.mark.parametrize(
    ("word", "meant"),
    [("colums", "columns"), ("Full", "full"), ("analyse", "analysis"), ("column", "columns")],
)
def test_a_kind_of_files_that_is_nearly_right_is_no_glob(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(["--hosts=a", "--what", word])
    assert caught.value.code == 2
    assert f"--what {word}: did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("glob", ["*.csv", "[c]olums", "colum?", "logs", "a/colums", "kernel_details.csv"])
def test_globs_and_names_far_from_any_kind_stay_globs(glob: str) -> None:
    assert parse_arguments(["--hosts=a", "--what", glob]).options.what == (glob,)


def test_a_wrong_inventory_is_exit_code_1_and_named(tmp_path: Path) -> None:
    (tmp_path / "h.yaml").write_text("version: 1\nhosts: [{adress: a}]\n")
    result = run_collect(["--inventory", "h.yaml", "--json"], tmp_path)
    assert result.returncode == 1
    assert (
        "cluster-collect: h.yaml:2: unknown key 'adress' of a host\n  → did you mean 'address'?"
        in result.stderr
    )
    assert json.loads(result.stdout)["error"]["advice"] == "did you mean 'address'?"


def test_a_missing_inventory_is_exit_code_1(tmp_path: Path) -> None:
    result = run_collect(["--inventory", "h.yaml"], tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "h.yaml: the inventory does not exist" in result.stderr


def test_an_unusable_rank_table_is_found_before_any_connection(tmp_path: Path) -> None:
    (tmp_path / "h.yaml").write_text("version: 1\nhosts: [{local: ., server_id: a}]\n")
    result = run_collect(["--inventory", "h.yaml", "--rank-table", "hccl.json", "--output", "run"], tmp_path)
    assert result.returncode == 1
    assert "hccl.json: the rank table cannot be read" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_password_is_asked_for_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / "h.yaml").write_text("version: 1\nhosts: [{address: a, profiler_root: /p}]\n")
    result = run_collect(["--inventory", "h.yaml", "--ask-password"], tmp_path)
    assert result.returncode == 1
    assert "--ask-password needs a terminal" in result.stderr


def test_a_plain_collection_loads_nothing_for_node_sets_or_a_terminal(tmp_path: Path) -> None:
    inventory = "version: 1\nhosts: [{address: 127.0.0.1, port: 1, profiler_root: /p}]\n"
    (tmp_path / "h.yaml").write_text(inventory)
    script = (
        "import sys\n"
        "from cluster_collect.cli import main\n"
        "main(['--inventory', 'h.yaml', '--attempts', '1', '-q'])\n"
        "useless = {'ClusterShell', 'rich', 'paramiko'}\n"
        "print('asyncssh' in sys.modules, sorted(useless & set(sys.modules)))\n"
    )
    result = ran([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert result.stdout.endswith("True []\n"), result.stdout


def test_options_become_one_value() -> None:
    line = (
        "--hosts n1 --jobs 3 --attempts 2 --bandwidth 200M --host-bandwidth 50Mi --min-free 1G --user u"
        " --connect-deadline 1 --login-deadline 2 --prepare-deadline 3 --listing-deadline 4"
        " --progress-deadline 5"
        " --least-rate 2K --give-up 6 --deadline 7 --host-deadline 8"
        " --what *.csv *.json --exclude a b --exclude c --capture newest --since @5"
        " --compression gzip --accept-new-host-keys"
        " --set port=22 --set jump=b"
    )
    arguments = parse_arguments(line.split())
    assert arguments.options == CollectOptions(
        what=("*.csv", "*.json"),
        exclude=("a", "b", "c"),
        capture="newest",
        since_s=5,
        n_jobs=3,
        n_attempts=2,
        bandwidth_bytes_per_s=200_000_000,
        min_free_bytes=1_000_000_000,
        connect_deadline_s=1,
        login_deadline_s=2,
        prepare_deadline_s=3,
        listing_deadline_s=4,
        progress_deadline_s=5,
        least_bytes_per_s=2000,
        give_up_s=6,
        deadline_s=7,
        host_deadline_s=8,
        compression="gzip",
        accept_new_host_keys=True,
    )
    assert arguments.host_defaults == {"port": "22", "jump": "b", "user": "u", "bandwidth": 50 * 1024 * 1024}


@pytest.mark.parametrize(
    ("words", "longest_s"),
    [
        ("", 400.0),
        ("--live 3", 3600.0),
        ("--host-deadline 0", math.inf),
        ("--live 3 --host-deadline none", math.inf),
    ],
)
def test_a_host_has_some_minutes_a_capture_an_hour_and_more_where_it_is_asked_for(
    words: str, longest_s: float
) -> None:
    options = parse_arguments(["--hosts", "n1", *words.split()]).options
    assert (options.host_deadline_s, options.deadline_s) == (longest_s, math.inf)


def test_no_space_need_be_left_free() -> None:
    assert parse_arguments(["--hosts", "n1", "--min-free", "0"]).options.min_free_bytes == 0


def test_files_are_verified_where_that_is_asked_for() -> None:
    assert parse_arguments(["--hosts", "n1", "--verify"]).options.verify


def test_defaults_are_those_of_the_options_and_written_nowhere_else() -> None:
    assert parse_arguments(["--hosts", "n1"]).options == CollectOptions()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("50M", 50_000_000),
        ("50m", 50_000_000),
        ("50Mi", 50 * 2**20),
        ("1.5G", 1_500_000_000),
        ("200MB/s", 200_000_000),
        ("2GiB", 1 << 31),
        ("100", 100),
        ("2 KiB", 2048),
        ("i", None),
        ("5i", None),
        ("-5M", None),
        ("5X", None),
        ("1e400", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


def test_lines_of_an_advice_that_are_to_be_copied_stay_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise InputError("nothing is there", "do both:\n  first\n  second")

    monkeypatch.setattr("cluster_collect.call.load_inventory", refused)
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text("version: 1\nhosts: [a]\n")
    assert main(["--inventory", str(inventory), "--output", str(tmp_path / "run"), "--lang", "en"]) == 1
    assert "do both:\n  first\n  second\n" in capsys.readouterr().err
