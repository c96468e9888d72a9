"""docs/collecting.md says what the code does: options, exit codes, inventory keys, examples."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from cluster_collect.arguments import make_parser
from cluster_collect.faults import HostError
from cluster_collect.inventory.keys import HOST_KEYS
from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_collect.inventory.native import TOP_KEYS
from cluster_collect.show.json_result import SCHEMA
from cluster_collect.spec import CollectOptions
from cluster_run.errors import ExitCode
from cluster_run.ids import MAX_HOSTS

DOCUMENT = Path(__file__).parents[1] / "docs" / "collecting.md"


@pytest.fixture(name="text")
def _text() -> str:
    return DOCUMENT.read_text()


def rows(text: str, *head: str) -> list[list[str]]:
    """Return the cells of the table with that head."""
    lines = text[text.index("| " + " | ".join(head) + " |") :].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_the_exit_codes_are_those_of_the_help_and_of_the_code(text: str) -> None:
    documented = [(int(code), meaning) for code, meaning in rows(text, "code", "meaning")]
    help_text = make_parser().format_help()
    lines = help_text[help_text.index("exit codes:") :].splitlines()[1:]
    assert documented == [
        (int(line.split()[0]), " ".join(line.split()[1:])) for line in lines if line.strip()
    ]
    assert [code for code, _ in documented] == sorted(set(ExitCode) - {ExitCode.FINDINGS})


def test_the_keys_of_a_host_are_those_of_the_code(text: str) -> None:
    documented = [(name, like) for name, like, _ in rows(text, "key", "for example", "meaning")]
    assert documented == [(f"`{name}`", f"`{key.like}`") for name, key in HOST_KEYS.items()]


def test_the_keys_of_an_inventory_are_those_of_the_code(text: str) -> None:
    assert [name for name, _ in rows(text, "key", "meaning")] == [f"`{name}`" for name in TOP_KEYS]


def test_the_words_for_failures_are_those_of_the_code(text: str) -> None:
    errors = [error.failure for error in HostError.__subclasses__()]
    assert len(set(errors)) == len(errors) > 8, "every error of a host has a word of its own"
    code = "".join(path.read_text() for path in (DOCUMENT.parents[1] / "cluster_collect").rglob("*.py"))
    words = {*errors, *re.findall(r'(?:Failure\(|failure=)"([a-z-]+)"', code)}
    assert {word.strip("`") for word, _ in rows(text, "failure", "meaning")} == words


def test_the_example_inventory_loads(text: str, tmp_path: Path) -> None:
    match = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert match is not None
    path = tmp_path / "hosts.yaml"
    path.write_text(match[1])
    inventory = load_inventory(InventoryRequest(path), {})
    assert len(inventory.specs) == 6
    assert list(inventory.groups) == ["rack1"]


def test_every_option_that_the_text_mentions_exists(text: str) -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", make_parser().format_help()))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


def test_limits_and_schemas_are_those_of_the_code(text: str) -> None:
    assert f"at most\n{MAX_HOSTS} hosts" in text
    assert f"schema `{SCHEMA}`" in text


def test_links_lead_somewhere(text: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (DOCUMENT.parent / target).exists(), target


def test_limits_and_retries_are_told_with_the_numbers_of_the_code(text: str) -> None:
    given = CollectOptions()
    limits = {row[0]: row[1] for row in rows(text, "limit", "default", "option")}
    assert list(limits.values()) == [
        f"{given.connect_deadline_s:g} s; {given.login_deadline_s:g} s",
        f"{given.listing_deadline_s:g} s",
        f"{given.give_up_s:g} s",
        f"{given.host_deadline_s:g} s",
        "none",
    ]
    assert given.deadline_s == math.inf
    assert given.listing_deadline_s == given.progress_deadline_s
    waits = [given.backoff_first_s * 2**n for n in range(3)]
    said = f"{', '.join(f'{one:g}' for one in waits)}, … {given.backoff_most_s:g} s"
    assert said in text
    assert f"(`--attempts`, {given.n_attempts} in all)" in text
    errors = {one.__name__ for one in HostError.__subclasses__() if one.retryable}
    contributing = (DOCUMENT.parents[1] / "CONTRIBUTING.md").read_text()
    (row,) = [line for line in contributing.splitlines() if line.startswith("| which failures are tried")]
    assert set(re.findall(r"`(\w+Error)`", row)) == errors
