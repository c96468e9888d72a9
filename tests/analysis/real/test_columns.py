"""Real captures, reduced as their hosts would reduce them, give the same tables and problems."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.rank import read_rank
from cluster_reduce.reduction import reducer_of
from tests.analysis.real.captures import DATA, needs_captures
from tests.analysis.sources.twins import as_columns, assert_same

pytestmark = needs_captures
#: How many files of each have columns.
CAPTURES = {
    "gpt3-16ranks-pt": 5,
    "qwen3-4ranks-pt": 14,
    "resnet-2of8-pt-text": 8,
    "resnet-2of8-pt-db": 4,
    "bytedance-ST/mixed": 16,
    "mindspore-r1-4ranks": 8,
}


@pytest.mark.parametrize("name", CAPTURES)
def test_columns_of_a_real_capture_give_the_same(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(DATA / name, run)
    raw = discover(run)
    before = {source.rank: read_rank(source) for source in raw.sources}
    files = [path for path in run.rglob("*") if reducer_of(os.fsencode(path)) and path.is_file()]
    n_columns = sum(map(as_columns, files))
    assert n_columns == CAPTURES[name]
    reduced = discover(run)
    assert (reduced.problems, reduced.notes) == (raw.problems, raw.notes)
    for source in reduced.sources:
        assert_same(before[source.rank], read_rank(source))
