"""What tests of sweeps share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook.kubernetes.sweep_nodes import Nodes
from tests.hook.kubernetes.sweep_site import Site


@pytest.fixture
def nodes(site: Site, tmp_path: Path) -> Nodes:
    """Two nodes with disks of their own."""
    return Nodes(site, tmp_path / "nodes")
