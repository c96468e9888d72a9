"""Sentences of the advice's rules, and the next checks, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_analysis.sentences.phrase import Phrase, fill
from cluster_analysis.sentences.texts import Template, texts
from cluster_run.facts import Fact
from cluster_run.findings import RuleName

_SAID = texts("checks")
#: What each rule says: `{who}` are the ranks it holds for, `{value}` is the largest; and what to do.
RULES: Mapping[RuleName, Template] = _SAID["rules"]
CHECKS: Mapping[RuleName, Template] = _SAID["rule_checks"]


def rule_sentences(name: RuleName, ranks: tuple[int, ...], value: float) -> tuple[Phrase, Phrase]:
    """Return what a rule says of these ranks, and what to check next."""
    one, several = (
        Phrase(f"rank {ranks[0]}", f"卡 {ranks[0]}"),
        Phrase(f"{len(ranks)} ranks", f"{len(ranks)} 张卡"),
    )
    values = {"who": one if len(ranks) == 1 else several, "value": value}
    return fill(RULES[name], values), fill(CHECKS[name], values)


def rule_of(fact: Fact) -> tuple[Phrase, Phrase]:
    """Return the same of a fact `rule_holds`."""
    values: dict[str, Any] = dict(fact.values)
    return rule_sentences(values["rule"], values["ranks"], values["value"])
