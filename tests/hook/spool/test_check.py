"""What `cluster-hook check` says of a spool, where the table of mounts is one of a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_hook.follow import file_systems
from cluster_hook.spool import check
from tests.hook.spool.spool_site import Site


@pytest.mark.parametrize(("kind", "is_refused"), [("nfs4", True), ("lustre", True), ("xfs", False)])
def test_a_spool_on_a_file_system_of_the_network_is_a_problem(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_refused: bool
) -> None:
    mounts = tmp_path / "mountinfo"
    root = str(site.spool.root).replace(" ", r"\040")
    mounts.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / {root} rw - {kind} x rw\n")
    monkeypatch.setattr(file_systems, "_MOUNTS", mounts)
    monkeypatch.setattr(check, "read_configuration", dict)
    of_the_spool = list(check.check(site.spool))[1]
    said = f"{site.spool.root}/pending is on a file system of the network"
    assert (of_the_spool.text == said) == is_refused
    if is_refused:
        assert of_the_spool.state == "problem"
        assert "local disk" in of_the_spool.advice
