"""Put the operators of all steps into one graph, in an order in which it can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict, replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.replay.job_evidence import JobEvidence, merge_steps
from cluster_analysis.replay.message_times import Messages, message_times
from cluster_analysis.replay.order import Instances, ReplayOrder, replay_order
from cluster_analysis.replay.replay import Graph
from cluster_analysis.replay.voted import with_voted_messages
from cluster_analysis.trace.evidence import StepEvidence, StepOperators
from cluster_analysis.trace.streams.points import POINT, with_points


def laid_out(parts: list[StepEvidence], operators: pa.Table, packets: pa.Table) -> JobEvidence:
    """Put all steps together, with one graph in place of their operators, which are as large as it is.

    If other steps pair a message that a step could not pair by itself, that is no note. `parts` is empty
    afterwards. The other arguments are those of `merge_steps`.
    """
    evidence = merge_steps(parts, operators, packets)
    parts.clear()
    steps = _operators_of(evidence)
    evidence = replace(evidence, step_operators=())
    graph, notes = build_graph(steps), evidence.notes
    if graph is not None and not graph.is_lone.any():
        notes = tuple(note for note in notes if note.kind != "unpaired_messages")
    return replace(evidence, graph=graph, notes=notes)


def job_graph(evidence: JobEvidence) -> Graph | None:
    """Return the graph of all steps; None without the operators of every one."""
    return evidence.graph or build_graph(_operators_of(evidence))


def _operators_of(evidence: JobEvidence) -> list[StepOperators]:
    """Return the operators of all steps; none unless every step has some: a part would not be the job."""
    present = [one for one in evidence.step_operators if one is not None]
    is_whole = len(present) == len(evidence.steps) and evidence.step_table.num_rows
    return present if is_whole else []


class _MergedSteps:
    """The columns of all steps, one step after the other, with instances and operators numbered through.

    Each column is asked for once: it is no longer held by step then.
    """

    def __init__(self, steps: Sequence[StepOperators]) -> None:
        self._columns: list[dict[str, Any]] = [asdict(step) for step in steps]
        self.n_instances_by_step = [step.n_instances for step in steps]
        self.n_operators_by_step = [len(step.operator_group) for step in steps]
        self.n_instances = sum(self.n_instances_by_step)
        self.ranks = np.unique(np.concatenate([step.ranks for step in steps]))
        self.groups = tuple(sorted({group for step in steps for group in step.groups}))
        self.types = tuple(sorted({name for step in steps for name in step.types}))

    def column(self, name: str) -> Any:
        """Return a column that stays as it is."""
        return np.concatenate(self._taken(name))

    def ranks_of_instances(self) -> IntArray:
        """Return where each instance's rank stands in `ranks`."""
        return np.concatenate(
            [
                np.searchsorted(self.ranks, own).astype(np.int32)[rank]
                for own, rank in zip(self._kept("ranks"), self._taken("instance_rank"), strict=True)
            ]
        )

    def named(self, name: str, names: str, wanted: tuple[str, ...]) -> IntArray:
        """Return a column of positions in a step's own `names` as positions in `wanted`."""
        place = {text: number for number, text in enumerate(wanted)}
        parts = [
            np.array([place[text] for text in own] or [0], np.int32)[column]
            for own, column in zip(self._kept(names), self._taken(name), strict=True)
        ]
        return np.concatenate(parts)

    def by_rank(self, name: str) -> FloatArray:
        """Return a column of numbers of ranks by [step, rank]; NaN where a rank has none."""
        measured = np.full((len(self._columns), len(self.ranks)), np.nan)
        for number, (own, of_ranks) in enumerate(zip(self._kept("ranks"), self._taken(name), strict=True)):
            measured[number, np.searchsorted(self.ranks, own)] = of_ranks
        return measured

    def _kept(self, name: str) -> list[Any]:
        return [columns[name] for columns in self._columns]

    def _taken(self, name: str) -> list[Any]:
        return [columns.pop(name) for columns in self._columns]

    def numbered(self, name: str, sizes: list[int], none: int = 0) -> IntArray:
        """Return a column of positions in steps of these `sizes`, numbered through; `none` in place of -1."""
        parts = self._taken(name)
        moved = np.empty(sum(map(len, parts)), np.int32)
        begin = before = 0
        for part, size in zip(parts, sizes, strict=True):
            own = moved[begin : begin + len(part)]
            np.add(part, before, out=own, casting="same_kind")
            np.putmask(own, part < 0, none)
            begin, before = begin + len(part), before + size
        return moved


def build_graph(steps: list[StepOperators]) -> Graph | None:
    """Lay the steps side by side; None when there is no operator to replay.

    `steps` is empty afterwards: each column that nobody else holds is freed as soon as it is laid out.
    """
    if all(step.types == (POINT,) for step in steps):
        return None
    merged = _MergedSteps(with_points(with_voted_messages(steps)))
    n_steps = len(steps)
    steps.clear()
    ranks, n_instances, by_step = merged.ranks, merged.n_instances, merged.n_instances_by_step
    rank = merged.ranks_of_instances()
    number_of_step = np.repeat(np.arange(n_steps, dtype=np.int32), by_step)
    operator = merged.numbered("instance_operator", merged.n_operators_by_step)
    after, sender, receiver = (
        merged.numbered(f"instance_{name}", by_step, n_instances) for name in ("after", "sender", "receiver")
    )
    join = merged.numbered("instance_join", by_step, n_instances + 1)
    is_p2p, is_side = merged.column("instance_is_p2p"), merged.column("instance_is_side")
    at = np.flatnonzero(is_p2p)
    messages = Messages(
        at, n_instances, operator[at], rank[at], sender[at], receiver[at],
        merged.column("instance_is_send")[at], merged.column("instance_is_receive")[at],
    )  # fmt: skip
    elapse, quickest = merged.column("instance_elapse_us"), merged.column("operator_transfer_us")
    cell = number_of_step * np.int32(len(ranks)) + rank
    by_operator = merged.numbered("instance_by_operator", by_step)
    waits_last = merged.column("instance_waits_last")

    def timed(*, may_wait: bool) -> tuple[FloatArray, BoolArray, ReplayOrder]:
        own, waits = np.full(n_instances, np.nan), np.zeros(n_instances, bool)
        transfer, own[at], waits[at] = message_times(messages, rank, elapse, quickest, may_wait=may_wait)
        instances = Instances(
            operator, by_operator, cell, after, join, sender, receiver, own, waits_last, is_p2p, waits
        )
        return transfer, waits, replay_order(instances, len(transfer), n_steps * len(ranks))

    transfer, waits, order = timed(may_wait=True)
    if order.has_circle and waits.any():
        # Sends that would wait for each other in a circle did not wait: the job came to its end.
        without = timed(may_wait=False)
        transfer, waits, order = (transfer, waits, order) if without[2].has_circle else without
    return Graph(
        ranks=ranks, n_steps=n_steps, rank=rank, step=number_of_step, operator=operator,
        after=after, sender=sender, receiver=receiver,
        gap_us=np.nan_to_num(merged.column("instance_gap_us"), copy=False),
        is_side=is_side, is_p2p=is_p2p, waits_for_receiver=waits, transfer_us=transfer,
        operator_step=np.repeat(np.arange(n_steps, dtype=np.int32), merged.n_operators_by_step),
        operator_group=merged.named("operator_group", "groups", merged.groups),
        operator_type=merged.named("operator_type", "types", merged.types),
        operator_place=merged.column("operator_place").astype(np.int32),
        operator_bytes=merged.column("operator_bytes"),
        operator_n_ranks=np.bincount(operator, minlength=len(transfer)),
        groups=merged.groups, types=merged.types, measured_us=merged.by_rank("step_us"),
        left_late_us=np.nan_to_num(merged.by_rank("left_late_us")), order=order,
    )  # fmt: skip
