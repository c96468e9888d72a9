"""Settings and fixtures for the tests of the hook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_hook.follow.pipeline import FollowOptions
from cluster_hook.kubernetes.sweep import SweepOptions
from cluster_simulate.cli import main as simulate
from tests.hook.kubernetes.fake_kubernetes import fake_kubernetes
from tests.hook.kubernetes.sweep_site import Site


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated job of two hosts, one rank of it slow."""
    run = tmp_path_factory.mktemp("simulated") / "run"
    job = ("--tp", "2", "--pp", "1", "--dp", "4", "--steps", "3", "--ranks-per-host", "4", "-q")
    assert simulate([str(run), "--scenario", "slow_rank:1.5", *job]) == 0
    return run


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A cluster without jobs, and empty volumes."""
    for name in ("profiles", "results"):
        (tmp_path / name).mkdir()
    with fake_kubernetes() as cluster:
        options = SweepOptions(
            namespace="training",
            selector="cluster-hook/enabled=true",
            profiles=tmp_path / "profiles",
            results=tmp_path / "results",
            holder="this-sweep",
            follow=FollowOptions(deadline_s=170, shows_report=False),
        )
        yield Site(cluster, options)
