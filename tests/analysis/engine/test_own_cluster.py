"""A Dask cluster that we start on this machine: the same bytes, and nobody else gets in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from cluster_analysis.cli import main
from tests.analysis.engine.foreigners import REFUSED, as_other_user, listening
from tests.analysis.runs import digests, write_small_run

if TYPE_CHECKING:
    from cluster_analysis.engine.clusters.dask_engine import DaskEngine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def listening_here() -> set[tuple[str, int]]:
    here = psutil.Process()
    return listening([here, *here.children(recursive=True)])


@pytest.fixture(scope="module")
def servers_before() -> set[tuple[str, int]]:
    """Servers that other tests of this process keep."""
    return listening_here()


@pytest.fixture(scope="module")
def engine(
    servers_before: set[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DaskEngine]:
    from cluster_analysis.engine.clusters.local_cluster import start_local  # noqa: PLC0415 - half a second in each worker of pytest

    started = start_local(1, tmp_path_factory.mktemp("own-cluster"))
    yield started
    started.close()


def test_a_cluster_started_here_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_small_run(tmp_path / "run")
    assert main([str(run), "--output", str(tmp_path / "alone"), "--workers", "1", "-q"]) == 0
    ours = ["--scheduler", "dask", "--workers", "2"]
    assert main([str(run), "--output", str(tmp_path / "out"), *ours]) == 0
    assert digests(tmp_path / "out") == digests(tmp_path / "alone")
    assert "Dask's dashboard, while this runs: http://127.0.0.1:" in capsys.readouterr().err


def test_it_listens_on_loopback_only(engine: DaskEngine, servers_before: set[tuple[str, int]]) -> None:
    assert {address for address, _ in listening_here() - servers_before} == {"127.0.0.1"}


def test_a_second_user_of_the_machine_is_refused(engine: DaskEngine) -> None:
    assert engine.address.startswith("tls://127.0.0.1:")
    security = engine.client.security
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    assert as_other_user(engine.address, {one: getattr(security, one) for one in names}) == REFUSED
