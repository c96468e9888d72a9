"""docs/findings.md has an entry for each kind of finding, with sentences that the reports really say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest

from cluster_analysis.sentences import checks, findings
from cluster_analysis.sentences.phrase import Template
from cluster_run.facts import FindingFact
from cluster_run.findings import CRITICAL_COST_SHARE, WARNING_COST_SHARE, Cause, Pattern
from cluster_run.kinds import FaultKind, WorkloadKind

DOCUMENT = (Path(__file__).parents[1] / "docs" / "findings.md").read_text("utf-8")
ENTRIES = dict(re.findall(r"^## (\w+)\n(.*?)(?=^#|\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
KINDS = (*get_args(FaultKind), *get_args(WorkloadKind))


def said_by(templates: Iterable[Template], sentence: str) -> list[str]:
    """The English templates that a sentence, or its beginning, is made of."""
    escaped = ((english, re.escape(english)) for english, _ in templates)
    patterns = ((english, re.sub(r"\\\{.*?\\\}", ".*", pattern)) for english, pattern in escaped)
    return [english for english, pattern in patterns if re.match(pattern, sentence, re.IGNORECASE)]


def test_every_kind_of_finding_has_an_entry_and_there_is_no_other() -> None:
    assert set(ENTRIES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_kind_is_what_a_report_says(kind: str) -> None:
    examples = re.findall(r"^> (.+)$", ENTRIES[kind], re.MULTILINE)
    assert examples
    assert [one for one in examples if not said_by(findings.SENTENCES.values(), one)] == []


@pytest.mark.parametrize(
    ("kind", "fact"), [("input_bound", "host_alone_late"), ("host_bound", "host_alone_idle")]
)
def test_a_host_that_is_a_stage_is_told_as_the_warning_that_it_is(kind: str, fact: FindingFact) -> None:
    workload = DOCUMENT.partition("# Workload")[2].partition("\n## ")[0]
    assert f"`{kind}-host-N`" in workload.partition("warning makes the job `degraded`")[2]
    assert f"`{kind}-host-N`, a warning" in ENTRIES[kind]
    examples = re.findall(r"^> (.+)$", ENTRIES[kind], re.MULTILINE)
    assert any(said_by([findings.SENTENCES[fact]], one) for one in examples)


@pytest.mark.parametrize("kind", KINDS)
def test_what_to_do_about_a_kind_is_what_a_report_says(kind: str) -> None:
    advised = re.findall(r"\*\*Next:\*\* (.+)$", ENTRIES[kind], re.MULTILINE)
    assert advised
    assert [one for one in advised if not said_by(checks.CHECKS.values(), one)] == []


def test_causes_patterns_and_severities_are_those_of_the_code() -> None:
    for name in (*get_args(Cause), *get_args(Pattern)):
        assert f"`{name}`" in DOCUMENT or name == "unknown"
    assert f"`critical`: {CRITICAL_COST_SHARE * 100:.0f} %" in DOCUMENT
    assert f"`warning`: {WARNING_COST_SHARE * 100:.1f} %" in DOCUMENT
