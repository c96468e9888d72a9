"""Large values go from process to process in files, and through the pipe where that cannot be."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.choose import must_file
from cluster_analysis.engine.handover import dumps, loads, set_aside
from cluster_analysis.engine.local import InProcessEngine, ProcessEngine
from cluster_analysis.options import MEMORY_LIMIT_BYTES
from cluster_analysis.tables.model import Selection
from cluster_run.ids import Step
from tests.analysis.runs import write_small_run


def large(n: int = 50_000) -> dict[str, npt.NDArray[np.float64] | pa.Table]:
    """A value with arrays that begin at odd places of a file."""
    return {
        "one": np.arange(n + 1) / 7.0,
        "column by column": np.asfortranarray(np.arange(2.0 * n).reshape(n, 2)),
        "every second": np.arange(2.0 * n)[::2],
        "table": pa.table({"number": pa.array(range(n)), "text": pa.array([str(i) for i in range(n)])}),
    }


def test_a_large_value_is_the_same_behind_the_file(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path), large())
    assert len(list(tmp_path.iterdir())) == 1
    got = loads(sent)
    for name, value in large().items():
        assert got[name].equals(value) if isinstance(value, pa.Table) else np.array_equal(got[name], value)
    assert list(tmp_path.iterdir()) == []


def test_arrays_can_be_changed_by_whom_they_are_handed_to(tmp_path: Path) -> None:
    got = loads(dumps(str(tmp_path), np.zeros(50_000)))
    got[3] = 1.0
    assert got.sum() == 1.0


def test_what_is_set_aside_is_the_same_and_leaves_no_file(tmp_path: Path) -> None:
    got = set_aside(str(tmp_path), large())
    for name, value in large().items():
        assert got[name].equals(value) if isinstance(value, pa.Table) else np.array_equal(got[name], value)
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_set_aside_stays_as_it_is(tmp_path: Path) -> None:
    assert set_aside(str(tmp_path / "missing"), np.ones(50_000)).sum() == 50_000


def test_a_small_value_needs_no_file(tmp_path: Path) -> None:
    assert pickle.loads(dumps(str(tmp_path), [np.zeros(9), "text"]))[1] == "text"
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_cannot_be_written_goes_as_it_is(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path / "missing"), np.ones(50_000))
    assert pickle.loads(sent).sum() == 50_000


def test_a_value_whose_file_is_gone_is_an_error(tmp_path: Path) -> None:
    sent = dumps(str(tmp_path), np.zeros(50_000))
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(FileNotFoundError):
        loads(sent)


# Which runs put their large tables into files.
_FULL_RANK_BYTES = 2_000_000


@pytest.mark.parametrize(("n_ranks", "in_files"), [(8, False), (64, True)])
def test_one_process_keeps_tables_of_small_runs_in_memory_only(n_ranks: int, in_files: bool) -> None:
    size_bytes = n_ranks * _FULL_RANK_BYTES
    assert must_file(InProcessEngine(), size_bytes, MEMORY_LIMIT_BYTES) == in_files


def test_a_higher_limit_keeps_tables_of_one_process_in_memory() -> None:
    assert not must_file(InProcessEngine(), 64 * _FULL_RANK_BYTES, 1 << 30)


def test_processes_hand_tables_over_in_files_whatever_their_size(tmp_path: Path) -> None:
    assert must_file(ProcessEngine(2, tmp_path), 1, 1 << 30)


@pytest.mark.parametrize("name", ["calls", "matrix"])
def test_a_frame_is_the_same_whatever_its_partitions(tmp_path: Path, name: str) -> None:
    from cluster_analysis.engine.frames import recorded_frame  # noqa: PLC0415 - half a second in each worker of pytest

    sources = discover(write_small_run(tmp_path / "run")).sources
    selection = Selection(steps=frozenset({Step(10), Step(11)}))
    whole = recorded_frame(name, sources, selection)
    by_rank = recorded_frame(name, sources, selection, partition_bytes=1)
    assert (whole.npartitions, by_rank.npartitions) == (1, len(sources))
    assert list(whole.dtypes) == list(by_rank.dtypes)
    order = ["rank", "step"]
    frames = [
        one.compute(scheduler="synchronous").sort_values(order, kind="stable").reset_index(drop=True)
        for one in (whole, by_rank)
    ]
    pd.testing.assert_frame_equal(*frames)
    assert set(frames[0]["step"]) == {10, 11}


# What a job of dask-jobqueue's runs on its node.
@pytest.mark.slow
def test_no_worker_takes_a_module_from_the_directory_that_its_job_begins_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")
    from cluster_analysis.engine.clusters import slurm  # noqa: PLC0415 - half a second in each worker of pytest

    (tmp_path / "cluster_analysis.py").write_text("raise SystemExit('of the user')")
    (tmp_path / "random.py").write_text("raise SystemExit('of the user')")
    monkeypatch.setattr(slurm, "_where_to_listen", dict)
    settings = slurm._settings(tmp_path)
    settings["security"] = None
    job = jobqueue.slurm.SLURMJob(
        "tcp://127.0.0.1:1",
        name="worker",
        protocol="tcp://",
        **{
            name: settings[name]
            for name in (
                "python",
                "cores",
                "processes",
                "memory",
                "walltime",
                "worker_command",
                "worker_extra_args",
            )
        },
    )
    (command,) = [line for line in job.job_script().splitlines() if sys.executable in line]
    words = command.split()
    assert words[1] in ("-P", "-I")
    assert words[2:4] == ["-m", "cluster_analysis.engine.clusters.worker"]
    asked = subprocess.run([*words[:4], "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "of the user" not in asked.stdout + asked.stderr
