"""Next checks by kind and cause of a finding, and the texts of rules, in both languages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cluster_run.facts import Fact
from cluster_run.findings import Finding
from cluster_words.findings import who
from cluster_words.phrase import Phrase, fill, joined
from cluster_words.texts import Template, texts

#: The address of the site that `make docs` builds, where there is one; the site of the documents uses it too.
BASE_VARIABLE = "CLUSTER_PROFILER_DOCS_URL"
_SAID = texts("checks")
#: By kind; of a rank or host by cause too. `where` is the rank or the host.
CHECKS: Mapping[str, Template] = _SAID["checks"]
#: The text of each rule, and what to do: `{who}` are the ranks it holds for, `{value}` is the largest.
RULES: Mapping[str, Template] = _SAID["rules"]
RULE_CHECKS: Mapping[str, Template] = _SAID["rule_checks"]
#: Facts that decide the check in place of the kind.
_CONDITIONS = {
    "no_matrix": "no_matrix",
    "rail": "rail",
    "port": "slow_port",
    "port_sending": "slow_port",
    "port_receiving": "slow_port",
    "clock_below_peers": "low_clock",
    "packets_lost": "packets_lost",
    "sent_again": "packets_lost",
    "hosts_alike": "hosts_alike",
    "host_link_stopped": "host_link_stopped",
    "loader_not_timed": "loader_not_timed",
    "loader_takes_little": "loader_not_timed",
    "head_split": "head_split",
    "ranks_pause_by_turns": "periodic_pause",
    "absent_members": "absent_members",
    "exposed_of_some_ranks": "exposed_of_some_ranks",
}


def next_check(finding: Finding) -> Phrase:
    """Return what to look at next: by the kind of finding, then by the rules that may be its reason."""
    host = finding.hosts[0] if finding.hosts else ""
    first = finding.links[0] if finding.links else None
    is_host = finding.record.subject == "host"
    values = {
        "where": fill(_SAID["parts"]["host"], {"host": host}) if is_host else who(finding),
        "rank": finding.ranks[0] if finding.ranks else None,
        "hosts": finding.hosts,
        "src": first.src if first else None,
        "dst": first.dst if first else None,
    }
    first_of_all = fill(CHECKS[check_kind(finding)], values)
    return joined([first_of_all, *(one for rule in finding.advice for one in rule_of(rule))])


def check_kind(finding: Finding) -> str:
    """Return the key of `CHECKS` that fits a finding."""
    said = next((_CONDITIONS[one.kind] for one in finding.facts if one.kind in _CONDITIONS), None)
    if said is not None:
        return said
    if finding.record.part == "slow_devices":
        return finding.cause if finding.cause in CHECKS else "unknown"
    if finding.kind == "retransmission":
        return "packets_lost"
    if finding.kind == "periodic_pause" and finding.ranks:
        return "rank_pause"
    return finding.kind


def rule_sentences(name: str, ranks: tuple[int, ...], value: float) -> tuple[Phrase, Phrase]:
    """Return what a rule says of these ranks, and what to check next."""
    one, several = (
        Phrase(f"rank {ranks[0]}", f"卡 {ranks[0]}"),
        Phrase(f"{len(ranks)} ranks", f"{len(ranks)} 张卡"),
    )
    values = {"who": one if len(ranks) == 1 else several, "value": value}
    return fill(RULES[name], values), fill(RULE_CHECKS[name], values)


def rule_of(fact: Fact) -> tuple[Phrase, Phrase]:
    """Return the check of a fact `rule_holds`."""
    values: dict[str, Any] = dict(fact.values)
    return rule_sentences(values["rule"], values["ranks"], values["value"])


def page_of(finding: Finding) -> Phrase:
    """Return the page of the documents that says what such a finding means, in both languages.

    Without a site it is the file of the documents, as it lies in the repository.
    """
    base = os.environ.get(BASE_VARIABLE, "").rstrip("/")
    folder, suffix = (base, "html") if base else ("docs", "md")
    return Phrase(
        f"{folder}/findings.{suffix}#{finding.kind}", f"{folder}/zh/findings.{suffix}#{finding.kind}"
    )
