"""Each finding names the page of the documents that says what it means."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from cluster_analysis.sentences.checks import BASE_VARIABLE, page_of
from cluster_run.kinds import FaultKind, WorkloadKind

ROOT = Path(__file__).parents[3]
KINDS = (*get_args(FaultKind), *get_args(WorkloadKind))


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_site_it_is_a_heading_of_a_file_of_the_repository(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BASE_VARIABLE, raising=False)
    page = page_of(SimpleNamespace(kind=kind))  # type: ignore[arg-type]
    for place in (page.en, page.zh):
        path, _, anchor = place.partition("#")
        assert re.search(f"^## {anchor}$", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_with_a_site_it_is_its_address_and_the_site_takes_the_same_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(BASE_VARIABLE, "https://docs.example/profiler/")
    page = page_of(SimpleNamespace(kind="slow_rank"))  # type: ignore[arg-type]
    assert page.en == "https://docs.example/profiler/findings.html#slow_rank"
    assert page.zh == "https://docs.example/profiler/zh/findings.html#slow_rank"
    assert BASE_VARIABLE in (ROOT / "mkdocs.yml").read_text("utf-8")
