"""Sentences of findings: one for each fact, and who waits for whom; in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_run.facts import Fact
from cluster_run.findings import Finding, Wait
from cluster_words.phrase import Phrase, fill, joined, of_fact
from cluster_words.texts import Template, texts

#: A saving below this gets no sentence.
_NOTHING_US = 5.0
_SAID = texts("findings")
#: Sentences of the fleet's memory on a device or host, one a state.
STORIES: Mapping[str, Template] = _SAID["stories"]
#: These as sentences of a finding.
QUOTES: Mapping[str, Template] = {
    kind: (f"By the fleet, {english}.", f"据机群记录，{chinese}。")
    for kind, (english, chinese) in STORIES.items()
}

#: The sentence of each fact. Besides the fact's values it may speak of the finding's: `who` (the rank and its
#: host), `rank`, `host`, `hosts`, `src`, `dst`, `ends`, and `when` (in which steps).
SENTENCES: Mapping[str, Template] = {**_SAID["findings"], **QUOTES}
WAITS: Mapping[str, Template] = _SAID["chains"]


def summary(finding: Finding) -> Phrase:
    """Return what a finding says, a sentence a fact."""
    common = {
        "who": who(finding),
        "rank": finding.ranks[0] if finding.ranks else None,
        "host": finding.hosts[0] if finding.hosts else "",
        "hosts": finding.hosts,
        "src": finding.links[0].src if finding.links else None,
        "dst": finding.links[0].dst if finding.links else None,
        "ends": _ends(finding),
        # Kernels are known for all steps together.
        "over": Phrase("", "") if finding.pattern == "persistent" else _part("over_all"),
    }
    sentences = []
    for one in finding.facts:
        if one.kind == "could_be_covered" and _is_nothing(one["cost_us"]):
            continue
        values = {**common, **dict(one.values)}
        n_steps = values.get("n_steps")
        when = steps_of(finding, n_steps if isinstance(n_steps, int) else None)
        sentences.append(fill(SENTENCES[one.kind], {**values, "when": when}))
    return joined(sentences)


def who(finding: Finding) -> Phrase:
    """Return the first rank of a finding with its host: `rank 13 (host 2)`; empty without ranks."""
    if not finding.ranks:
        return Phrase("", "")
    values = {"rank": finding.ranks[0], "host": finding.hosts[0] if finding.hosts else ""}
    return _part("who_and_host" if finding.hosts else "who", **values)


def steps_of(finding: Finding, n_steps: int | None) -> Phrase:
    """Return in which steps a finding shows, of the `n_steps` of the job where they are known."""
    if finding.pattern == "trend":
        return _part("growing")
    if n_steps == 1:
        return _part("only_step")
    if n_steps is not None and len(finding.steps) >= n_steps:
        return _part("every_step")
    return _part("one_step" if n_steps is None else "some_steps", steps=finding.steps, n_steps=n_steps)


def _part(name: str, **values: object) -> Phrase:
    return fill(_SAID["parts"][name], values)


def _is_nothing(time_us: object) -> bool:
    """Whether a time would be written as 0: then a saving is not worth a sentence."""
    return isinstance(time_us, float | int) and time_us < _NOTHING_US


def _ends(finding: Finding) -> tuple[int, ...]:
    if not finding.links:
        return ()
    first = finding.links[0]
    return tuple(sorted((first.src, first.dst)))


def story(said: Fact) -> Phrase:
    """Return the fleet's sentence on a unit."""
    return of_fact(STORIES, said)


def chain(finding: Finding) -> tuple[Phrase, ...]:
    """Return how a finding's delay travels, a sentence a row."""
    late = _late(finding)
    return tuple(fill(WAITS[row.waits_for], _wait_values(row, late)) for row in finding.chain)


def _wait_values(row: Wait, late: Phrase) -> dict[str, Any]:
    digits = 0 if row.ms_per_step >= 100 else 1 if row.ms_per_step >= 1 else 2
    longest = fill(_SAID["in_chains"]["longest"], {"rank": row.rank, "ms": f"{row.ms_per_step:.{digits}f}"})
    return {"who": late, "group": row.group, "n_ranks": row.n_ranks, "longest": longest}


def _late(finding: Finding) -> Phrase:
    if finding.record.subject == "rank":
        return fill(_SAID["in_chains"]["rank"], {"who": finding.ranks[0]})
    if finding.record.subject == "host":
        return fill(_SAID["in_chains"]["host"], {"who": finding.hosts[0]})
    return fill(_SAID["in_chains"]["network"], {})
