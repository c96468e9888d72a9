"""docs/hooks.md and docs/hooks-reference.md say what is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from cluster_hook.cli import build_parser
from cluster_hook.job import FOLLOWED_MARK, parse_request
from cluster_hook.kubernetes import trainingjob
from cluster_hook.spool.drain import DrainOptions
from cluster_hook.subcommands.drain import DEFAULT_SPOOL
from cluster_tell.outcome import SCHEMA
from cluster_tell.teller import TELL_WHEN
from cluster_tell.webhook import URL_VARIABLE
from tests.hook.jobs import a_job

REPOSITORY = Path(__file__).parents[2]
PAGES = [(REPOSITORY / "docs" / name).read_text() for name in ("hooks.md", "hooks-reference.md")]
TEXT = "\n".join(PAGES)
_BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
_COMMANDS = [
    line.strip() for block in _BLOCKS for line in block.splitlines() if line.startswith("cluster-hook ")
]


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_in_it_is_one_the_hook_takes(command: str) -> None:
    build_parser().parse_args(shlex.split(command, comments=True)[1:])


def test_there_are_commands_in_it() -> None:
    assert len(_COMMANDS) >= 7


def test_every_file_of_ours_it_names_is_there() -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]+", TEXT)) - {"deploy/kubernetes/overlays/ours"}
    assert named
    assert {name for name in named if not (REPOSITORY / name.rstrip("./")).exists()} == set()


def test_every_annotation_and_variable_is_spelled_as_the_code_spells_it() -> None:
    known = {
        value
        for value in vars(trainingjob).values()
        if isinstance(value, str) and value.startswith(trainingjob.PREFIX)
    }
    named = set(re.findall(r"`(cluster-hook/[a-z-]+)`", TEXT))
    assert known - {trainingjob.PREFIX} == (named | {trainingjob.PROFILE_DIR}) - {"cluster-hook/enabled"}
    assert URL_VARIABLE in TEXT
    assert FOLLOWED_MARK in TEXT
    assert str(DEFAULT_SPOOL) in TEXT
    assert f'"{SCHEMA}"' in TEXT


def test_the_words_and_defaults_are_those_of_the_code() -> None:
    assert "--tell " + r"\|".join(TELL_WHEN) in TEXT
    defaults = DrainOptions()
    assert f"`--attempts {defaults.n_attempts}`, `--retry-after {defaults.retry_after_s:g}`" in TEXT
    assert f"`--keep {defaults.keep_s / 86400:g}` days" in TEXT
    assert f"`--max-age {defaults.max_age_s / 86400:g}` days" in TEXT


def test_the_comment_of_the_example_is_understood() -> None:
    (comment,) = re.findall(r"^#SBATCH --comment=(\S+)$", TEXT, re.MULTILINE)
    request = parse_request(a_job(comment=comment))
    assert request is not None
    assert request.results == Path("/project/reports/12")


def test_every_alert_has_its_place_in_the_run_book() -> None:
    rules = yaml.safe_load((REPOSITORY / "deploy" / "prometheus" / "cluster_analysis.rules.yml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    run_book = (REPOSITORY / "docs" / "alerts.md").read_text()
    assert {line[3:] for line in run_book.splitlines() if line.startswith("## ")} == alerts
