"""What changed since a baseline, and what became of its findings, in both languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster_analysis.judge.baseline import Change, Comparison, Matched
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.headings import say
from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_analysis.sentences.results import subjects
from cluster_analysis.sentences.results.costs import cost_of
from cluster_run.facts import Fact, RefusalKind

#: More lines are not read.
MAX_REPORTED = 12
SENTENCES: Mapping[str, Template] = {
    "step": (
        "The step takes {after_us:ms}, before {before_us:ms}: {share:percent} {longer}.",
        "每步耗时 {after_us:ms}，之前为 {before_us:ms}：{longer} {share:percent}。",
    ),
    "same_step": (
        "The step takes {after_us:ms}, before {before_us:ms}: as long as before, within the noise.",
        "每步耗时 {after_us:ms}，之前为 {before_us:ms}：在噪声范围内没有变化。",
    ),
    "component": (
        "Part of the step, {part}: {share:percent} {more} time ({noise}).",
        "步的组成部分“{part}”：时间{more} {share:percent}（{noise}）。",
    ),
    "rank": (
        "Computing of rank {rank}: {share:percent} {more} time relative to its peers ({noise}).",
        "卡 {rank} 的计算：相对同类{more} {share:percent}（{noise}）。",
    ),
    "link": (
        "Link {transport} {src} to {dst}: {share:percent} {more} time relative to its peers ({noise}).",
        "链路 {transport} {src} → {dst}：相对同类时间{more} {share:percent}（{noise}）。",
    ),
    "operator": (
        "Kernel {name}: {share:percent} {more} time a call ({noise}), {step_ms} {step_more} a step.",
        "算子 {name}：单次时间{more} {share:percent}（{noise}），每步{step_more} {step_ms}。",
    ),
}
REFUSALS: Mapping[RefusalKind, Template] = {
    "laid_out_differently": (
        "the runs are laid out differently ({before} and {after}): ranks, links and operators have no "
        "counterparts",
        "两次运行的并行策略不同（{before} 与 {after}）：卡、链路和算子无法对应",
    ),
    "other_number_of_ranks": (
        "the runs have {before} and {after} ranks: ranks, links and operators have no counterparts",
        "两次运行分别有 {before} 和 {after} 张卡：卡、链路和算子无法对应",
    ),
    "first_without_steps": ("the first run has no step times", "之前的运行没有步耗时"),
    "second_without_steps": ("the second run has no step times", "之后的运行没有步耗时"),
}
_PARTS: Mapping[str, Template] = {
    "computing": ("computing", "计算"),
    "free": ("free", "空闲"),
    "preparing": ("preparing", "准备"),
    "communication": ("communication", "通信"),
}
_MORE: Mapping[bool, Phrase] = {True: Phrase("more", "增加"), False: Phrase("less", "减少")}
_LONGER: Mapping[bool, Phrase] = {True: Phrase("longer", "增加"), False: Phrase("shorter", "减少")}
_NOISE: Template = ("± {share:percent}", "± {share:percent}")


def summary(comparison: Comparison) -> tuple[Phrase, ...]:
    """Return the certain changes, that of the step first; a step that is as before is said to be."""
    return tuple(_sentences(comparison))


def refusals(comparison: Comparison) -> tuple[Phrase, ...]:
    """Return what could not be compared, and why."""
    return tuple(_refusal(one) for one in comparison.refusals)


def _sentences(comparison: Comparison) -> Iterator[Phrase]:
    step = next((one for one in comparison.changes if one.what == "step"), None)
    if step is not None:
        yield fill(SENTENCES["step" if step.is_certain else "same_step"], _values(step))
    for one in comparison.changes:
        if one.is_certain and one.what != "step":
            yield fill(SENTENCES[one.what], _values(one))


def _values(change: Change) -> dict[str, object]:
    is_more = change.change_share > 0
    more_ms = change.more_ms_per_step or 0.0
    known: dict[str, object] = {
        "before_us": change.before,
        "after_us": change.after,
        "share": change.change_share,
        "more": _MORE[is_more],
        "step_ms": format_ms(abs(more_ms)),
        "step_more": _MORE[more_ms > 0],
        "longer": _LONGER[is_more],
        "noise": fill(_NOISE, {"share": (change.high_share - change.low_share) / 2}),
        "name": change.name,
        "part": fill(_PARTS.get(change.name, (change.name, change.name)), {}),
        "transport": change.transport,
    }
    if change.ranks:
        known |= {"rank": change.ranks[0], "src": change.ranks[0], "dst": change.ranks[-1]}
    return known


def _refusal(fact: Fact) -> Phrase:
    return fill(REFUSALS[fact.kind], dict(fact.values))  # type: ignore[index]


def since(comparison: Comparison) -> tuple[tuple[str, Phrase], ...]:
    """Return `Fixed: slow rank 5 (was 97 ms).` and the like, each with its state; at most MAX_REPORTED."""
    return tuple((one.state, _became(one)) for one in comparison.findings[:MAX_REPORTED])


def _became(one: Matched) -> Phrase:
    return say(
        f"since.{one.state}",
        what=subjects.subject(one.finding),
        before=cost_of(one.before).phrase(),
        after=cost_of(one.after).phrase(),
    )
