"""Fixtures for the tests of the spool."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_hook.spool.spool import Spool
from tests.hook.spool.spool_site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    spool = Spool(tmp_path / "spool")
    spool.root.mkdir(mode=0o700)
    spool.prepare()
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    return Site(spool, work_dir)
