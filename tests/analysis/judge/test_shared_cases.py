"""Small jobs rebuilt from strangers' files and from models: what must be said of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_analysis import pipeline
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.options import AnalyseOptions

CASES = Path(__file__).parents[4] / "shared" / "cases"


@contextmanager
def judged(name: str) -> Iterator[Detection]:
    """Give what is found in one of the cases; skip where they are not beside the repository."""
    if not (CASES / name).is_dir():
        pytest.skip(f"the case {name} is not beside the repository")
    options = AnalyseOptions(run=CASES / name, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as examined:
        yield detect(examined.evidence, examined.topology)


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        pytest.param("bench-16/prof", "slow_host-3", id="a host far slower than three others"),
        pytest.param("bench-29/prof", "slow_rank-23", id="a device among unequal samples"),
        pytest.param("28-waiting-inside-fused-kernels/slow5", "slow_rank-5", id="no call is recorded"),
        pytest.param(
            "28-waiting-inside-fused-kernels/slow5-with-allreduce", "slow_rank-5", id="calls beside"
        ),
        pytest.param("30-thousands-of-steps/prof", "slow_rank-1", id="1030 steps"),
    ],
)
def test_the_fault_is_an_alarm(name: str, finding: str) -> None:
    with judged(name) as found:
        assert finding in [one.id for one in found.findings if one.is_alarm]


def test_nobody_is_slow_where_all_wait_inside_kernels_alike() -> None:
    with judged("28-waiting-inside-fused-kernels/healthy") as found:
        assert found.verdict == "healthy"


@pytest.mark.parametrize("form", ["level0", "level1-wait-known", "level1-wait-zero"])
def test_a_rank_alone_that_waits_in_its_first_collective_blames_nobody(form: str) -> None:
    with judged(f"20-one-rank-first-collective-waits/{form}") as found:
        assert found.verdict == "unknown"
        assert [one.id for one in found.findings if one.is_alarm] == []
        assert "waited_for_others" in [one.kind for one in found.notes]
