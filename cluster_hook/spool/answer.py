"""Answers of `cluster-hook check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: `unknown`: nothing here tells, and the advice says what would.
AnswerState = Literal["ok", "problem", "unknown"]


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    state: AnswerState
    text: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The answer in one line."""
        return f"{self.state}: {self.text}" + (f"\n  {self.advice}" if self.advice else "")
