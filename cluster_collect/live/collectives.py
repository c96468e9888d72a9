"""Check that hosts captured the same iterations, by the collectives that they made together.

Steps and numbers can lie: a rank that began late names its steps as it was asked to, and one that was
restarted counts anew. All members of a collective leave it together, though. Where the k-th collectives of a
group are laid beside each other, host by host, their ends differ by the hosts' clocks and nothing else; what
they differ beyond that is how far the host was from the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_collect.live.outcome import Lost
from cluster_run.errors import InputError
from cluster_run.ids import HostId
from cluster_run.manifest import HostOutcome

#: Largest offset between clocks of devices and of their hosts: nothing below this is reported.
_SURE_S = 0.05
_COLUMNS = ["rank", "step", "group", "op_type", "start_ns", "elapse_us"]


def elsewhere(
    run: Path, hosts: Sequence[HostOutcome], step_s: float
) -> tuple[Mapping[HostId, Lost], tuple[str, ...]]:
    """Return the hosts whose collectives are those of another iteration, and the open questions.

    A host is so if its clock, by the collectives, is half a step off its clock when files were fetched.

    Args:
        run: the run directory with the files of the hosts.
        hosts: those that it was collected from, with their clocks beside ours.
        step_s: how long a step takes.
    """
    if len(hosts) < 2:
        return {}, ()
    by_collectives = _clocks_s(run)
    if by_collectives is None:
        return {}, (
            "the files hold no collectives, so it is not known whether the same steps are the same "
            "iterations",
        )
    asked = {one.host: one for one in hosts if one.clock_offset_ms is not None}
    apart_s = {
        host: by_collectives[host] - (one.clock_offset_ms or 0.0) / 1000
        for host, one in asked.items()
        if host in by_collectives
    }
    middle_s = statistics.median_low(apart_s.values() or [0.0])
    unsure_s = max((asked[host].clock_uncertainty_ms or 0.0 for host in apart_s), default=0.0) / 1000
    lost = {
        host: Lost(
            "other_iterations", _reason(one - middle_s, step_s), "was it restarted, or did it begin late?"
        )
        for host, one in apart_s.items()
        if abs(one - middle_s) > step_s / 2 + 2 * unsure_s + _SURE_S
    }
    n_unknown = len(hosts) - len(apart_s)
    if n_unknown:
        return lost, (
            f"{n_unknown} hosts share no collectives with the others: their step numbers are believed",
        )
    return lost, ()


def _reason(late_s: float, step_s: float) -> str:
    side = "after" if late_s > 0 else "before"
    return (
        f"its collectives ended {abs(late_s):.2f} s {side} those of the others of the same numbers, which is "
        f"{abs(late_s) / step_s:.0f} steps: these are other iterations"
    )


def _clocks_s(run: Path) -> Mapping[HostId, float] | None:
    """Return how far each host's clock is ahead of one of them, by their collectives; None without any."""
    # Lazy: their reader takes a while to import.
    from cluster_analysis.discovery.discover import discover  # noqa: PLC0415
    from cluster_analysis.engine.tasks import Wanted, batches_by_bytes, read_batch  # noqa: PLC0415
    from cluster_analysis.reports.timeline.clocks import estimate_clocks  # noqa: PLC0415

    try:
        capture = discover(run)
    except InputError:
        return None  # the analysis says why
    calls = [
        part.load().collectives.select(_COLUMNS)
        for batch in batches_by_bytes(capture.sources, 1)
        for part in read_batch(batch, Wanted(spans=False))[1].by_step.values()
    ]
    clocks = estimate_clocks(calls, capture.hosts).by_host
    known = {HostId(host): one.offset_us / 1e6 for host, one in clocks.items() if one.error_us is not None}
    return known if len(known) > 1 else None
