"""Hosts with jobs that run, for tests of capturing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.sshd import SshLab
from tests.collect.live.hosts import Cluster, LiveHost, need_namespaces
from tests.collect.live.profiler_wheel import profiler_package


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without hosts yet."""
    need_namespaces()
    package = profiler_package()
    with SshLab(tmp_path / "ssh") as lab:
        made = Cluster(tmp_path, lab, package)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def host(cluster: Cluster) -> LiveHost:
    """The only host of the cluster."""
    cluster.add(1)
    return cluster.hosts[0]
