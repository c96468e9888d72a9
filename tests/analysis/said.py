"""What a reader is told of findings, notes and problems, in English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import pytest

from cluster_analysis.sources.errors import BadFileError
from cluster_run.facts import Fact
from cluster_run.findings import Finding
from cluster_run.problem import Problem
from cluster_words import checks, findings, notes, problems


class HasNotes(Protocol):
    """A capture, a rank's tables, the evidence, or what was found in it."""

    @property
    def notes(self) -> Iterable[Fact]: ...


def reason(problem: Problem) -> str:
    """Why something could not be used."""
    return problems.reason(problem).en


def advice(problem: Problem) -> str:
    """What to do about it."""
    return problems.advice(problem).en


def summary(finding: Finding) -> str:
    """What a finding says."""
    return findings.summary(finding).en


def next_check(finding: Finding) -> str:
    """What to look at next."""
    return checks.next_check(finding).en


def notes_of(one: HasNotes) -> tuple[str, ...]:
    """What could not be judged."""
    return tuple(notes.note(fact).en for fact in one.notes)


class Heard(list[str]):
    """A remark that keeps what it was told, in English."""

    def __call__(self, why: Fact, *also: Fact) -> None:
        """Keep one problem of a part of a file."""
        self.append(reason(Problem(why, also=also)))


@contextmanager
def refused(words: str) -> Iterator[None]:
    """Expect that a whole file is refused, for a reason that the regular expression `words` is found in."""
    with pytest.raises(BadFileError) as caught:
        yield
    error = caught.value
    assert re.search(words, reason(Problem(error.why, also=error.also)))
