"""The real trace with a published cause, data/bytedance-ST of the shared folder, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.detection.modelled import said_of

NAME = "trace"
FOLDER = Path(__file__).parents[3] / "shared" / "data" / "bytedance-ST"
FORMS = ("batch", "mixed")
#: Known of these 32 steps, from the trace's README: ms a step.
STAGE_MS = (260.0, 320.0)
STALLED_MS = 17.0


def print_trace() -> None:
    """Print what is known of the trace and what is said of both forms of its messages."""
    if not FOLDER.exists():
        print(f"\nreal trace: left out, {FOLDER} is not there")
        return
    print(
        f"\nreal trace: stage_imbalance costs {STAGE_MS[0]:.0f} to {STAGE_MS[1]:.0f} ms of 2170 ms a step, "
        f"two groups stalled by one event {STALLED_MS:.0f} ms together; nothing else"
    )
    for form in FORMS:
        said = said_of(FOLDER / form)
        rows = [
            f"{one.id} {one.severity} "
            + ("without cost" if one.cost_ms_per_step is None else f"{one.cost_ms_per_step:.0f} ms")
            for one in said.findings
        ]
        print(f"{form}: {said.verdict}; {'; '.join(rows)}")
