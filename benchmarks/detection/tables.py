"""The tables of `benchmarks.detection`: sums over jobs, and recall by class of fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.detection.scoring import DEAR_SHARE, MATERIAL_SHARE, Outcome


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print the sums of one source of jobs in one mode, one row a method."""
    faulty = [one for one in outcomes if one.n_material]
    healthy = [one for one in outcomes if one.is_healthy]
    n_faults = sum(one.n_material for one in outcomes)
    print(
        f"\n{outcomes[0].source}, {outcomes[0].mode}: {n_faults} faults of {MATERIAL_SHARE:.0%} of the step "
        f"or more in {len(faulty)} jobs, {sum(one.n_small for one in outcomes)} smaller, "
        f"{len(healthy)} healthy jobs"
    )
    print(
        f"{'method':16} {'precision':>9} {'recall':>7} {'F1':>6} {'top-1':>6} "
        f"{'healthy jobs with an alarm':>27}"
    )
    ours = [(one.n_found, one.first_is_right, one.n_wrong) for one in faulty]
    _print_row("this detection", n_faults, ours, sum(one.n_alarms > 0 for one in healthy), len(healthy))
    for name in outcomes[0].rules:
        named = sum(one.rules[name][2] > 0 for one in healthy)
        _print_row(name, n_faults, [one.rules[name] for one in faulty], named, len(healthy))
    _print_details(outcomes, faulty, healthy, n_faults)


def _print_details(
    outcomes: Sequence[Outcome], faulty: Sequence[Outcome], healthy: Sequence[Outcome], n_faults: int
) -> None:
    unwanted, false = (sum(getattr(one, name) > 0 for one in healthy) for name in ("n_alarms", "n_wrong"))
    print(
        f"of the {unwanted} healthy jobs with an alarm {false} accuse falsely: what the others name truly "
        f"costs {MATERIAL_SHARE:.0%} of the step or more"
    )
    small, noted = sum(one.n_small for one in outcomes), sum(one.n_noted for one in outcomes)
    wrong_kind = sum(one.n_wrong_kind for one in faulty)
    print(f"wrong kind: {wrong_kind} of {n_faults}; noted below {MATERIAL_SHARE:.0%}: {noted} of {small}")
    errors = sorted(error for one in faulty for error in one.cost_error_shares)
    print(
        f"cost error, share of the step: median {_at(errors, 0.5):.3%}, 90 % {_at(errors, 0.9):.3%}; "
        f"found without a cost: {sum(one.n_without_cost for one in faulty)}"
    )
    replays = sorted(one.replay_error_share for one in outcomes if one.replay_error_share is not None)
    print(
        f"replay error: median {_at(replays, 0.5):.3%}, 90 % {_at(replays, 0.9):.3%}, "
        f"worst {_at(replays, 1.0):.2%}"
    )
    reassured = sum(one.is_reassured for one in outcomes)
    print(f"healthy, with a fault of {DEAR_SHARE:.0%} of the step or more: {reassured} jobs")
    print(f"recall by class: {'; '.join(_classes(faulty))}")


def _classes(outcomes: Iterable[Outcome]) -> list[str]:
    sums: dict[str, tuple[int, int]] = {}
    for one in outcomes:
        found, material = sums.get(one.fault_class, (0, 0))
        sums[one.fault_class] = (found + one.n_found, material + one.n_material)
    return [f"{name} {found}/{material}" for name, (found, material) in sorted(sums.items())]


def _print_row(
    name: str, n_faults: int, hits: Sequence[tuple[int, bool, int]], alarms: int, n_healthy: int
) -> None:
    right, wrong = sum(found for found, _, _ in hits), sum(n for _, _, n in hits)
    recall = right / max(n_faults, 1)
    precision = right / max(right + wrong, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    top = sum(first for _, first, _ in hits) / max(len(hits), 1)
    print(f"{name:16} {precision:9.3f} {recall:7.3f} {f1:6.3f} {top:6.3f} {alarms:15} of {n_healthy}")


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
