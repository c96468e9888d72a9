"""Nobody but its owner gets into a Dask cluster on Slurm's nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.analysis.engine.foreigners import REFUSED, as_other_user, listening
from tests.slurm.jobs import SimulatedJob
from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Starts the cluster as the analysis does, says where it is, and ends it when its input ends.
_STARTER = """
import json, sys
from pathlib import Path
from cluster_analysis.engine.clusters.slurm import start_on_slurm
from cluster_analysis.engine.protocol import Place

engine = start_on_slurm(1, Place((sys.argv[1],), Path(sys.argv[2])))
security = engine.client.security
names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
key = {one: Path(getattr(security, one)).read_text() for one in names}
print(json.dumps([engine.address, key]), flush=True)
sys.stdin.read()
engine.close()
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs; `output` is where the analysis would write."""

    address: str
    key: dict[str, str]
    starter: int
    output: Path

    def processes(self) -> list[psutil.Process]:
        """Return the scheduler's process and all workers."""
        workers = [one for one in psutil.process_iter() if self.address in _command_of(one)]
        below = [child for one in workers for child in one.children(recursive=True)]
        return [psutil.Process(self.starter), *workers, *below]


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def cluster(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed here: pip install '.[slurm]'")
    work = tmp_path_factory.mktemp("closed")
    some_file = next(path for path in simulated.run.rglob("*.json") if path.is_file())
    process = subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(some_file), str(work / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **lab.environment,
            "DASK_JOBQUEUE__SLURM__MEMORY": "1GiB",
            "DASK_JOBQUEUE__SLURM__LOG_DIRECTORY": str(work),
        },
        cwd=work,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said, "it did not start"
        address, key = json.loads(said)
        yield Cluster(address, key, process.pid, work / "out")
        process.stdin.close()
        assert process.wait(120) == 0
        assert not (work / "out").exists(), "no key is left behind"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_user_is_refused(cluster: Cluster) -> None:
    assert cluster.address.startswith("tls://")
    assert as_other_user(cluster.address, cluster.key) == REFUSED


def test_scheduler_and_workers_listen_only_where_they_reach_each_other(cluster: Cluster) -> None:
    processes = cluster.processes()
    assert len(processes) > 2
    # The emulated nodes are on loopback, so that is where Slurm says they are.
    assert {address for address, _ in listening(processes)} == {"127.0.0.1"}


def test_the_key_lies_where_nobody_else_may_look(cluster: Cluster) -> None:
    (directory,) = cluster.output.iterdir()
    assert directory.stat().st_mode & 0o077 == 0
    assert {one.name: one.stat().st_mode & 0o077 for one in directory.iterdir()} == {
        "ca.pem": 0,
        "cert.pem": 0,
        "key.pem": 0,
    }
