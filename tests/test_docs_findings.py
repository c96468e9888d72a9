"""docs/findings.md has an entry for each kind of finding, with sentences that the reports really say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

import pytest

from cluster_run.findings import CRITICAL_COST_SHARE, WARNING_COST_SHARE, Cause, Pattern
from cluster_run.kinds import FaultKind, WorkloadKind
from cluster_words import checks, findings
from cluster_words.texts import Template

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENT = (DOCS / "findings.md").read_text("utf-8")
ENTRY = re.compile(r"^## (\w+)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
ENTRIES = dict(ENTRY.findall(DOCUMENT))
CHINESE = dict(ENTRY.findall((DOCS / "zh" / "findings.md").read_text("utf-8")))
KINDS = (*get_args(FaultKind), *get_args(WorkloadKind))


def said_by(templates: Iterable[Template], sentence: str, language: int = 0) -> list[str]:
    """The templates of a language that a sentence, or its beginning, is made of."""
    escaped = ((words[language], re.escape(words[language])) for words in templates)
    patterns = ((text, re.sub(r"\\\{.*?\\\}", ".*", pattern)) for text, pattern in escaped)
    return [text for text, pattern in patterns if re.match(pattern, sentence, re.IGNORECASE)]


def test_every_kind_of_finding_has_an_entry_and_there_is_no_other() -> None:
    assert set(ENTRIES) == set(KINDS)
    assert list(CHINESE) == list(ENTRIES)


@pytest.mark.parametrize(
    ("entries", "line", "sentences", "language"),
    [
        pytest.param(ENTRIES, r"^> (.+)$", findings.SENTENCES, 0, id="example"),
        pytest.param(ENTRIES, r"\*\*Next:\*\* (.+)$", checks.CHECKS, 0, id="next"),
        pytest.param(CHINESE, r"\*\*下一步：\*\* (.+)$", checks.CHECKS, 1, id="next in Chinese"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_tells_what_a_report_says(
    kind: str, entries: dict[str, str], line: str, sentences: Mapping[str, Template], language: int
) -> None:
    told = re.findall(line, entries[kind], re.MULTILINE)
    assert told
    assert [one for one in told if not said_by(sentences.values(), one, language)] == []


@pytest.mark.parametrize(
    ("kind", "fact"), [("input_bound", "host_alone_late"), ("host_bound", "host_alone_idle")]
)
def test_a_host_that_is_a_stage_is_told_as_the_warning_that_it_is(kind: str, fact: str) -> None:
    workload = DOCUMENT.partition("# Workload")[2].partition("\n## ")[0]
    assert f"`{kind}-host-N`" in workload.partition("warning makes the job `degraded`")[2]
    assert f"`{kind}-host-N`, a warning" in ENTRIES[kind]
    examples = re.findall(r"^> (.+)$", ENTRIES[kind], re.MULTILINE)
    assert any(said_by([findings.SENTENCES[fact]], one) for one in examples)


def test_causes_patterns_and_severities_are_those_of_the_code() -> None:
    for name in (*get_args(Cause), *get_args(Pattern)):
        assert f"`{name}`" in DOCUMENT or name == "unknown"
    assert f"`critical`: {CRITICAL_COST_SHARE * 100:.0f} %" in DOCUMENT
    assert f"`warning`: {WARNING_COST_SHARE * 100:.1f} %" in DOCUMENT
