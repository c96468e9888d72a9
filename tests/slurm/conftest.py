"""One Slurm cluster for all tests that a worker runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import together
from tests.hook.public_python import make_public_python, public_directory
from tests.slurm.jobs import Pair, SimulatedJob, simulate, submit, write_script
from tests.slurm.lab import SlurmLab, missing_programs, start_lab

REPOSITORY = Path(__file__).parents[2]
N_NODES = 4


def why_not_here() -> str:
    """Return why Slurm cannot run here; empty where it can."""
    missing = missing_programs()
    if missing:
        return f"Slurm is not installed here, {missing[0]} is missing: tools/system_packages.sh slurm"
    if not Path("/sys/fs/cgroup").is_mount():
        return "slurmd does not start without control groups, and none are mounted at /sys/fs/cgroup"
    return ""


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    if why_not_here():
        pytest.skip(why_not_here())
    root = tmp_path_factory.mktemp("slurm")
    cluster = start_lab(root, REPOSITORY / "deploy" / "slurm" / "epilog_slurmctld.sh", N_NODES)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """A directory below which every user can read."""
    with public_directory() as root:
        yield root


@pytest.fixture(scope="session")
def python(public: Path) -> Path:
    """An interpreter that every user can run, with the project."""
    return make_public_python(public / "venv")


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> SimulatedJob:
    return simulate(tmp_path_factory.mktemp("simulated") / "run")


@pytest.fixture(scope="session")
def followed(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Pair]:
    """A job for each way to end, with its post-job; none of them has ended yet for sure."""
    ends = {
        "TIMEOUT": ("sleep 300", ("--time=1",)),
        "COMPLETED": ("true", ()),
        "FAILED": ("exit 3", ()),
        "CANCELLED": ("sleep 300", ()),
    }
    pairs = {}
    for state, (end, sbatch) in ends.items():
        script = write_script(tmp_path_factory.mktemp(state.lower()), simulated, end=end)
        pairs[state] = submit(lab, script, *sbatch)
    cancelled = pairs["CANCELLED"]
    lab.wait_for_file(cancelled.work / f"written-{cancelled.job}")
    lab.run("scancel", cancelled.job)
    return pairs


@pytest.fixture(autouse=True)
def _submit_early(request: pytest.FixtureRequest) -> None:
    """Slurm counts time limits in minutes: the job that runs into one starts before the tests beside it."""
    beside = together(request.node.nodeid)
    if any(
        "followed" in getattr(item, "fixturenames", ()) and together(item.nodeid) == beside
        for item in request.session.items
    ):
        request.getfixturevalue("followed")
