"""What real users point at: parents of runs, parts of them, links, locked and half-written directories."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank
from tests.analysis.discovery.test_discover import first_steps, ranks_of, run_directory, write_r1
from tests.analysis.one_rank import read_rank
from tests.analysis.said import advice, notes_of, reason
from tests.analysis.sources.builders import LINKS, OPS, OUTPUT, STEP_ROW, step_csv, write_capture
from tests.commands import ran


def write_run(root: Path, first_step: int, ranks: list[int], stamp: int = 20250101000000000) -> None:
    root.mkdir(parents=True)
    run = run_directory(root, ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for rank in ranks:
        profiler = run / f"cluster_profiler/{rank // 2 + 1}/profiler"
        write_capture(
            profiler,
            rank,
            f"node_{rank}_{stamp + rank}_ascend_pt",
            steps=step_csv({str(first_step): STEP_ROW}),
            ops={f"step{first_step}": OPS},
            links={f"step{first_step}": LINKS},
        )


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two whole runs, the second newer, and a third of which a part was collected."""
    write_run(tmp_path / "runs/first", 1, [0, 1, 2, 3])
    write_run(tmp_path / "runs/second", 2, [0, 1, 2, 3], 20250301000000000)
    write_run(tmp_path / "runs/third", 3, [0, 3], 20250601000000000)
    return tmp_path / "runs"


def test_of_several_runs_the_newest_whole_one_is_analysed_and_the_others_noted(runs: Path) -> None:
    capture = discover(runs)
    assert first_steps(capture) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert notes_of(capture) == (
        "3 runs found: first, second, third; only second is analysed here (--part NAME takes another, or "
        "give its directory; --all-parts analyses all)",
    )
    assert capture.problems == ()


def test_ranks_of_two_runs_are_never_mixed(runs: Path) -> None:
    # Rank 1 is missing in the newest run: an older rank 1 must not stand in for it.
    shutil.rmtree(runs / "second/cluster_profiler/1/profiler/node_1_20250301000000001_ascend_pt")
    shutil.rmtree(runs / "first")
    capture = discover(runs)
    assert first_steps(capture) == {0: 2, 2: 2, 3: 2}
    assert [reason(problem) for problem in capture.problems] == ["no profiler data of 1 of 4 ranks: 1"]


def test_another_run_is_chosen_by_its_name(runs: Path) -> None:
    assert first_steps(discover(runs, "first")) == {0: 1, 1: 1, 2: 1, 3: 1}
    with pytest.raises(InputError, match="no single capture is called 'fifth'") as caught:
        discover(runs, "fifth")
    assert caught.value.advice == "there are: first, second, third"


def test_a_run_of_which_nothing_is_there_any_more_is_told_beside_another_one(runs: Path) -> None:
    captures = runs / "fourth/cluster_profiler/1/profiler"
    captures.mkdir(parents=True)
    (captures / "node_0_20250901000000000_ascend_pt").symlink_to(runs / "gone")
    (problem,) = discover(runs).problems
    assert problem.file == "*_0_20250901000000000_ascend_pt"
    assert problem.host is None


def test_where_captures_have_no_names_the_message_says_so(runs: Path) -> None:
    with pytest.raises(InputError) as caught:
        discover(runs / "first", "fifth")
    assert caught.value.advice == "there are: one without a name"


def test_the_only_run_below_a_path_has_its_rank_table(runs: Path) -> None:
    for name in ("first", "third"):
        shutil.rmtree(runs / name)
    capture = discover(runs.parent)
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    assert capture.addresses == {"1": "10.0.0.1", "2": "10.0.0.2"}
    assert notes_of(capture) == ()


def test_a_part_of_an_r1_run_has_the_ranks_of_its_rank_table_and_not_its_device_ids(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for host in (1, 2):
        for device in (0, 1):
            write_r1(run / f"cluster_profiler/{host}/profiler", device)
    capture = discover(run / "cluster_profiler/2")
    assert ranks_of(capture) == [2, 3]
    assert capture.hosts[Rank(2)] == HostId("2")
    (problem,) = capture.problems
    assert reason(problem) == "no profiler data of 2 of 4 ranks: 0-1"
    assert advice(problem) == "give the directory that holds the captures of all ranks"


def test_one_rank_of_a_job_says_to_give_the_directory_of_all(tmp_path: Path) -> None:
    metadata = {"distributed_args": {"world_size": 4}}
    capture = discover(write_capture(tmp_path, 2, metadata=metadata))
    (problem,) = capture.problems
    assert reason(problem) == "no profiler data of 3 of 4 ranks: 0-1,3"
    assert advice(problem) == "give the directory that holds the captures of all ranks"


def test_names_may_hold_spaces_line_ends_and_chinese(tmp_path: Path) -> None:
    root = tmp_path / "训练 one\ntwo 'three' \"four\" #5 %41"
    write_capture(root / "节点 1", 0)
    capture = discover(root)
    assert read_rank(capture.sources[0]).problems == ()
    assert ranks_of(capture) == [0]


def test_links_to_themselves_and_to_nowhere_cost_nothing(tmp_path: Path) -> None:
    output = write_capture(tmp_path / "job", 0) / OUTPUT
    for directory in (tmp_path, tmp_path / "job", output):
        (directory / "itself").symlink_to("itself")
        (directory / "nowhere").symlink_to("/does/not/exist")
    (tmp_path / "job/above").symlink_to("..")
    (output / "op_statistic.csv").symlink_to("op_statistic.csv")
    capture = discover(tmp_path)
    assert ranks_of(capture) == [0]
    assert read_rank(capture.sources[0]).problems == ()
    assert capture.problems == ()


@pytest.mark.parametrize("target", ["/does/not/exist", "node_7_20250101000000000_ascend_pt"])
def test_a_capture_that_is_a_link_to_nowhere_is_told(tmp_path: Path, target: str) -> None:
    write_capture(tmp_path, 0)
    (tmp_path / "node_7_20250101000000000_ascend_pt").symlink_to(target)
    capture = discover(tmp_path)
    assert ranks_of(capture) == [0]
    (problem,) = capture.problems
    assert (problem.file, reason(problem)) == (
        "*_7_20250101000000000_ascend_pt",
        "cannot be listed: it is a link that leads nowhere",
    )


def test_a_capture_that_is_still_written_names_what_is_not_there_yet(tmp_path: Path) -> None:
    for rank in range(3):
        write_capture(tmp_path, rank)
    early, half = (tmp_path / f"node1_100{rank}_20250109123456{rank:03d}_ascend_pt" for rank in (1, 2))
    shutil.rmtree(early / OUTPUT)
    (half / OUTPUT / "step_trace_time.csv").unlink()
    text = (half / OUTPUT / "communication.json").read_text()
    (half / OUTPUT / "communication.json").write_text(text[: len(text) // 2])
    capture = discover(tmp_path)
    assert ranks_of(capture) == [0, 2]
    (problem,) = capture.problems
    assert problem.rank == 1
    assert "not parsed" in reason(problem)
    told = {one.file: reason(one) for one in read_rank(capture.sources[1]).problems}
    assert told == {
        "communication.json": f"truncated at byte {len(text) // 2}",
        "step_trace_time.csv": "no step times",
    }


LOCKED = """
import sys
from pathlib import Path
from cluster_analysis.discovery.discover import discover
from tests.analysis.one_rank import read_rank
from cluster_words.problems import reason
capture = discover(Path(sys.argv[1]))
problems = [*capture.problems, *(one for source in capture.sources for one in read_rank(source).problems)]
for one in problems:
    print(one.host, one.rank, one.file, reason(one).en, sep=" | ")
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root may read everything, and setpriv is missing",
)
def test_ranks_without_read_permission_are_told_by_host_and_never_by_its_real_name(
    request: pytest.FixtureRequest,
) -> None:
    # Not below pytest's own directory: each session that begins closes that one to others again.
    tmp_path = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    write_run(tmp_path / "run", 1, [0, 1, 2, 3])
    captures = sorted((tmp_path / "run").rglob("*_ascend_pt"))
    locked = [captures[1], captures[2] / OUTPUT, captures[3] / OUTPUT / "communication.json"]
    for path in locked:
        path.chmod(0)
    python = [sys.executable, "-c"]
    if os.geteuid() == 0:
        # Root may read everything, so another user looks.
        python = ["setpriv", "--reuid", "65534", "--clear-groups", *python]
        for parent in tmp_path.parents:
            parent.chmod(parent.stat().st_mode | 0o055)
        tmp_path.chmod(0o755)
    try:
        probe = ran([*python, "import cluster_analysis.sources.rank"])
        told = ran([*python, LOCKED, str(tmp_path / "run")])
    finally:
        for path in locked:
            path.chmod(0o755)
    if probe.returncode != 0:
        pytest.skip(f"no other user can run Python here: {probe.stderr.splitlines()[-1]}")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == [
        "1 | None | *_1_20250101000000001_ascend_pt | cannot be listed: Permission denied",
        "2 | None | *_2_20250101000000002_ascend_pt | cannot be listed: Permission denied",
        "None | None |  | no profiler data of 2 of 4 ranks: 1-2",
        "2 | 3 | communication.json | cannot be read: Permission denied",
    ]
