"""Pictures of a run in Python."""

from __future__ import annotations

import pytest

from cluster_analysis.api import Run
from cluster_run.errors import InputError
from tests.analysis.reports import builder


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A simulated job, through the files."""
    import cluster_analysis as ca  # noqa: PLC0415
    from cluster_simulate.cli import main as simulate  # noqa: PLC0415

    path = tmp_path_factory.mktemp("plots") / "run1"
    simulate(
        [
            str(path),
            "--tp",
            "2",
            "--pp",
            "2",
            "--dp",
            "2",
            "--steps",
            "3",
            "--scenario",
            "slow_rank:1.4@5",
            "-q",
        ]
    )
    return ca.analyse(path)


@pytest.mark.parametrize("name", ["lanes", "steps", "ranks", "waits"])
def test_each_picture_is_a_figure_with_axes_that_a_notebook_shows(run: Run, name: str) -> None:
    picture = getattr(run.plot, name)()
    axes = picture.axes[0]
    assert axes.get_title()
    assert axes.get_xlabel()
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_bars_of_ranks_are_as_high_as_the_times_of_the_table(run: Run) -> None:
    bars = run.plot.ranks().axes[0].containers[0]
    heights = [bar.get_height() for bar in bars]
    assert heights == pytest.approx((run.steps.groupby("rank")["computing_us"].mean() / 1e3).tolist())
    assert max(range(8), key=lambda rank: heights[rank]) == 5


def test_what_was_not_replayed_has_no_lanes_and_says_so() -> None:
    with pytest.raises(InputError, match="the table lanes is empty"):
        Run(builder.degraded()).plot.lanes()
