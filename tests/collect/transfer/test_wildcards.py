"""A profiler root with wildcards: what they mean is settled on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab
from tests.collect.helpers import (
    FULL,
    Recorder,
    collected,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)


@pytest.mark.parametrize("way", ["tar", "sftp", "local"])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_a_root_with_wildcards_takes_what_matches_and_nothing_beside_it(
    own_lab: SshLab, tmp_path: Path, way: str, compression: str
) -> None:
    base = tmp_path / "it's $(here)"
    for rank, place in enumerate(("job-1/out put", "job-2/out put", "job-2/other", "test-1/out put")):
        make_capture(base / place, rank)
    root = str(base / "job-?" / "out*")
    spec = HostSpec(HostId("1"), ServerId("s"), local=root, transport="local")
    if way != "local":
        settings = {"ForceCommand": "internal-sftp"} if way == "sftp" else {}
        spec = spec_for(own_lab, own_lab.start("127.0.0.2", settings=settings), root)
    options = FULL if compression == "zstd" else type(FULL)(**{**vars(FULL), "compression": "none"})
    outcome = only_host(collected(spec, tmp_path / "run", options))
    assert outcome.state == "complete", outcome.reason
    wanted = {path: text for path, text in tree(base).items() if path.startswith(("job-1/", "job-2/out put"))}
    assert host_tree(tmp_path / "run") == wanted
    again = Recorder()
    collected(spec, tmp_path / "run", options, again)
    assert again.stored == []


def test_a_root_that_matches_nothing_is_named(own_lab: SshLab, tmp_path: Path) -> None:
    root = str(tmp_path / "job-*" / "prof")
    outcome = only_host(
        collected(spec_for(own_lab, own_lab.start("127.0.0.2"), root), tmp_path / "run", FULL)
    )
    assert (outcome.state, outcome.failure) == ("failed", "no-data")
    assert root in outcome.reason
