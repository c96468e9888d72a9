from pathlib import Path

import pandas as pd
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.frames import recorded_frame
from cluster_analysis.tables.model import Selection
from cluster_run.ids import Step
from tests.analysis.runs import write_small_run


@pytest.mark.parametrize("name", ["calls", "matrix"])
def test_a_frame_is_the_same_whatever_its_partitions(tmp_path: Path, name: str) -> None:
    sources = discover(write_small_run(tmp_path / "run")).sources
    selection = Selection(steps=frozenset({Step(10), Step(11)}))
    whole = recorded_frame(name, sources, selection)
    by_rank = recorded_frame(name, sources, selection, partition_bytes=1)
    assert (whole.npartitions, by_rank.npartitions) == (1, len(sources))
    assert list(whole.dtypes) == list(by_rank.dtypes)
    order = ["rank", "step"]
    frames = [
        one.compute(scheduler="synchronous").sort_values(order, kind="stable").reset_index(drop=True)
        for one in (whole, by_rank)
    ]
    pd.testing.assert_frame_equal(*frames)
    assert set(frames[0]["step"]) == {10, 11}
