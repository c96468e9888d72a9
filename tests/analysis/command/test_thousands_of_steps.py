"""Jobs profiled without an end: thousands of steps, of which the output names ranges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.cli import main

HEADER = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def made(root: Path, n_steps: int) -> Path:
    """Write four ranks that have step times alone; rank 1 computes 20 % slower from step 701 on."""
    for rank in range(4):
        capture = root / f"node1_{3000 + rank}_2025112610053020{rank}_ascend_pt"
        (capture / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
        info = {"rank_id": rank, "config": {"experimental_config": {"_profiler_level": "Level1"}}}
        (capture / f"profiler_info_{rank}.json").write_text(json.dumps(info))
        lines = [HEADER]
        for step in range(1, n_steps + 1):
            computing = (4e5 + 37 * (step * 7 % 11) + 13 * rank) * (1.2 if rank == 1 and step > 700 else 1.0)
            lines.append(f"{rank},{step},{computing},6e4,0,6e4,2e4,{computing + 8e4},0,6e4,50")
        (capture / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.mark.slow
def test_a_rank_that_slows_down_after_700_of_thousands_of_steps_is_told_in_a_few_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, last = made(tmp_path / "run", 1100), 1100
    assert main([str(run), "--output", str(tmp_path / "out"), "--no-report", "--quiet", "--lang", "en"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert f"Rank 1 (host 1) computes 20 % slower than its 3 peers of stage 0 in steps 701-{last}" in said
    assert len(said) < 1500
