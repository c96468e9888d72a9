"""Problems: data that could not be used, and why, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Phrase, fill, joined
from cluster_analysis.sentences.texts import Template, texts
from cluster_run.facts import Fact, ReasonKind
from cluster_run.problem import Problem
from cluster_run.said.chinese import SEMICOLON

_SAID = texts("problems")
WHY: Mapping[ReasonKind, Template] = _SAID["why"]
#: Parts of files that are left out, and why.
PARTS: Mapping[str, Template] = _SAID["parts"]
REASONS: Mapping[str, Template] = _SAID["left_out"]


def reason(problem: Problem) -> Phrase:
    """Return why something could not be used."""
    return joined(map(_why, (problem.why, *problem.also)), SEMICOLON)


def _why(fact: Fact) -> Phrase:
    values: dict[str, object] = dict(fact.values)
    if fact.kind == "left_out":
        values["what"] = fill(PARTS[str(fact["part"])], values)
        values["why"] = fill(REASONS[str(fact["reason"])], values)
    elif fact.kind == "keys_left_out":
        values["n_more"] = int(fact["n_keys"]) - 1  # type: ignore[arg-type]
        values["what"] = fill(_SAID["no_keys"][fact["what"]], values)
    elif fact.kind == "rows_lack":
        values["columns"], values["rows"] = (
            fill(_SAID[table][fact["rows"]], values) for table in ("columns", "rows")
        )
    template = WHY[fact.kind]  # type: ignore[index]
    phrase = fill(template, values)
    return Phrase(phrase.en.rstrip(), phrase.zh.removesuffix("："))
