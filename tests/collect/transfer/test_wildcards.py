"""A profiler root with wildcards: what they mean is settled on the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.collect.conftest import Start
from tests.collect.helpers import FULL, OneHost, local_host, make_capture, tree


@pytest.mark.many
@pytest.mark.parametrize("way", ["tar+zstd", "tar", "sftp", "local"])
def test_a_root_with_wildcards_takes_what_matches_and_nothing_beside_it(
    start: Start, tmp_path: Path, way: str
) -> None:
    base = tmp_path / "it's $(here)"
    for rank, place in enumerate(("job-1/out put", "job-2/out put", "job-2/other", "test-1/out put")):
        make_capture(base / place, rank)
    pattern = base / "job-?" / "out*"
    host = local_host(pattern, tmp_path / "run")
    if way != "local":
        settings = {"ForceCommand": "internal-sftp"} if way == "sftp" else {}
        host = start(settings).having(profiler_root=str(pattern))
    options = replace(FULL, compression="none") if way == "tar" else FULL
    assert host.collect(options).reason == ""
    wanted = {path: text for path, text in tree(base).items() if path.startswith(("job-1/", "job-2/out put"))}
    assert host.landed() == wanted
    assert host.planned(options) == 0


def test_a_root_that_matches_nothing_is_named(host: OneHost, tmp_path: Path) -> None:
    root = str(tmp_path / "job-*" / "prof")
    outcome = host.having(profiler_root=root).collect()
    assert (outcome.state, outcome.failure) == ("failed", "no-data")
    assert root in outcome.reason
