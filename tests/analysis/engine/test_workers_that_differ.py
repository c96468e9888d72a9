"""Workers that cannot do the work are left out and named before it begins; no rank is blamed for them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cluster_analysis.cli import main
from cluster_analysis.engine.graph import task
from cluster_analysis.engine.protocol import EngineError, Place
from cluster_run.version import VERSION
from tests.analysis.engine.cluster import analysed, loopback_cluster, not_mounted
from tests.analysis.runs import digests, write_small_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
_REPOSITORY = Path(__file__).parents[3]
#: Read by Python when it starts: nothing of ours can be imported then.
_NOTHING_OF_OURS = """
import sys

class Refuse:
    def find_spec(self, name, path, target=None):
        if name.startswith("cluster_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_run(tmp_path_factory.mktemp("checks") / "run", steps=3)


def older_version(folder: Path) -> dict[str, str]:
    """Return the environment of a worker in which the package is of another version."""
    for name in ("cluster_run", "cluster_analysis"):
        shutil.copytree(_REPOSITORY / name, folder / name)
    (folder / "cluster_run" / "version.py").write_text('VERSION = "0.0.1"\n')
    return {"PYTHONPATH": str(folder)}


def not_installed(folder: Path) -> dict[str, str]:
    """Return the environment of a worker in which the package is missing."""
    (folder / "sitecustomize.py").write_text(_NOTHING_OF_OURS)
    return {"PYTHONPATH": str(folder)}


def test_workers_that_differ_are_left_out_and_named_and_none_that_is_left_is_exit_1_and_one_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cluster_analysis.engine.clusters import connect as connecting  # noqa: PLC0415 - half a second in each worker of pytest

    alone = [str(run), "--output", str(tmp_path / "alone"), "--workers", "1", "-q", "--no-insight"]
    assert main(alone) == 0
    for name in ("older", "without"):
        (tmp_path / name).mkdir()
    with loopback_cluster(tmp_path, n_workers=0) as cluster:
        monkeypatch.setattr(connecting, "CONNECT_DEADLINE_S", 0.5)
        with pytest.raises(EngineError, match="has no workers") as error:
            connecting.connect(cluster.address, None, Place((), tmp_path / "out"))
        assert error.value.advice == f"start some: dask worker {cluster.address}"
        cluster.add_worker(environment=not_installed(tmp_path / "without"))
        cluster.wait_for_workers()
        none = analysed(run, tmp_path / "out", cluster.address)
        assert not (tmp_path / "out").exists()
        cluster.add_worker()
        cluster.add_worker(environment=older_version(tmp_path / "older"))
        cluster.add_worker(before=not_mounted(run))
        cluster.wait_for_workers()
        done = analysed(run, tmp_path / "out", cluster.address, ["--no-insight"])
    assert none.returncode == 1
    assert "no worker of the Dask cluster at tcp://127.0.0.1:" in none.stderr
    assert ": cluster-profiler is not installed there" in none.stderr
    assert len(none.stderr.splitlines()) == 1
    assert done.returncode == 0, done.stderr
    assert f": has cluster-profiler 0.0.1, and here is {VERSION}: install the same version" in done.stderr
    assert ": cluster-profiler is not installed there: install it" in done.stderr
    assert f": does not see {run}/" in done.stderr
    assert ": workers must see the run under the same path as here" in done.stderr
    assert done.stderr.count("left out: 1 of 4 workers (tcp://127.0.0.1:") == 3
    assert digests(tmp_path / "out") == digests(tmp_path / "alone")
    assert not list((tmp_path / "out").glob("cluster_*")), "no file for MindStudio Insight"


def test_workers_that_join_later_are_asked_before_they_take_part(run: Path, tmp_path: Path) -> None:
    from cluster_analysis.engine.clusters.connect import connect  # noqa: PLC0415 - half a second in each worker of pytest

    (tmp_path / "without").mkdir()
    place = Place(tuple(str(file) for file in sorted(run.rglob("step_trace_time.csv"))[:1]), tmp_path / "out")
    with loopback_cluster(tmp_path, n_workers=1) as cluster:
        engine = connect(cluster.address, None, place)
        try:
            cluster.add_worker(environment=not_installed(tmp_path / "without"))
            cluster.add_worker()
            cluster.wait_for_workers()
            graph = {("who", number): task(os.getpid) for number in range(64)}
            done = {outcome.value for outcome in engine.run(graph, list(graph))}
            first, _differs, later = (process.pid for process in cluster.workers)
            assert len(engine.client.nthreads()) == 3
            assert done == {first, later}
        finally:
            engine.close()
