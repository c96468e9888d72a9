"""The drain with real workers. A worker waits where its rank table is a FIFO that nobody writes to."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from cluster_hook.spool.drain import DrainOptions, drain
from cluster_hook.spool.spool import Attempts, Spool
from cluster_run.errors import InputError
from cluster_tell.metrics import place_metrics
from tests.commands import ended, wait_until
from tests.hook.http_server import mailbox
from tests.hook.spool.spool_site import Site


def release(fifo: Path) -> None:
    """Let the worker that reads this FIFO go on, with a rank table that is none."""
    fifo.write_text("not a rank table")


def test_a_request_is_done_once_and_a_second_drain_does_nothing(site: Site) -> None:
    site.drop("1")
    site.drop("2")
    assert sorted(site.drain()) == [("1", "done"), ("2", "done")]
    assert site.drain() == []
    assert len(site.told) == 2
    assert [site.keys(area) for area in ("pending", "active", "failed")] == [[], [], []]
    assert json.loads(site.spool.path("done", "1", ".json").read_text())["state"] == "nothing"


def test_a_request_whose_drain_died_after_recording_its_end_is_not_done_again(site: Site) -> None:
    content = site.drop("1").read_bytes()
    site.drain()
    path = site.spool.path("active", "1", ".job")
    path.write_bytes(content)
    os.utime(path, (1, 1))
    assert site.drain() == []
    assert (site.keys("pending"), site.keys("active")) == ([], [])


@pytest.mark.slow
def test_a_job_that_ends_again_is_done_again(site: Site) -> None:
    """The epilog gives both ends of a job that was requeued one number, and the same content."""
    site.drop("1")
    site.drain()
    site.drop("1")
    assert site.drain() == [("1", "done")]


def test_a_request_that_came_anew_while_its_first_was_worked_on_is_kept(site: Site) -> None:
    site.drop("1").rename(site.spool.path("active", "1", ".job"))
    site.drop("1", comment="profile_dir=other")
    site.spool.put_back("1")
    assert b"other" in site.spool.content("pending", "1")
    assert site.keys("active") == []


@pytest.mark.slow
def test_a_request_that_comes_while_another_hangs_is_done(site: Site) -> None:
    fifo = site.drop_that_waits("1")
    process = site.start_drain("--at-once=2")
    wait_until(lambda: site.keys("active") == ["1"])
    site.drop("2")
    wait_until(site.spool.path("done", "2", ".json").exists)
    assert site.keys("active") == ["1"]
    release(fifo)
    ended(process)


@pytest.mark.slow
def test_a_request_that_failed_is_not_tried_at_once_again_by_the_same_drain(site: Site) -> None:
    site.drop("1", nodes="n1")
    fifo = site.drop_that_waits("2")
    process = site.start_drain("--at-once=2", "--retry-after=0.001")
    wait_until(lambda: site.spool.attempts("1").number == 1 and site.keys("pending") == ["1"])
    time.sleep(2.5)  # the drain has looked for requests twice
    assert site.spool.attempts("1").number == 1
    release(fifo)
    ended(process)


@pytest.mark.slow
def test_a_job_number_that_comes_again_for_another_job_is_done(site: Site) -> None:
    site.drop("1")
    site.drain()
    site.drop("1", comment="profile_dir=other")
    assert site.drain() == [("1", "done")]


@pytest.mark.slow
def test_a_failing_request_is_tried_a_few_times_and_ends_with_its_reason(site: Site) -> None:
    site.drop("1", nodes="n1")
    assert site.drain(n_attempts=2) == [("1", "retried")]
    site.let_retry_come("1")
    assert site.drain(n_attempts=2) == [("1", "failed")]
    assert f"there is no directory {site.work_dir}/p" in site.reason("1")
    assert "tried 2 times" in site.reason("1")
    assert site.keys("failed") == ["1"], "the request is kept, to be put back by hand"
    assert site.drain() == []


@pytest.mark.parametrize(
    "comment", ["profile_dir=%q", "profile_dir=a,profile_dir=b", "profile_dir=a,rank_table=t"]
)
def test_a_mistake_that_no_further_attempt_mends_is_told_at_once(site: Site, comment: str) -> None:
    (site.work_dir / "t").write_text("not a rank table")
    site.drop("1", nodes="n1", comment=comment)
    assert site.drain(n_attempts=3) == [("1", "failed")]
    assert site.told[0].outcome is not None
    assert "tried" not in site.reason("1")


@pytest.mark.slow
def test_a_failed_request_that_is_put_back_gets_all_its_attempts_again(site: Site) -> None:
    site.drop("1", nodes="n1")
    site.drain(n_attempts=1)
    site.spool.move("1", "failed", "pending")
    (site.work_dir / "p").mkdir()
    assert site.drain(n_attempts=2) == [("1", "retried")]


def test_a_retry_waits(site: Site) -> None:
    site.drop("1", nodes="n1")
    site.drain()
    site.spool.set_attempts("1", Attempts(1, time.time() + 1000))
    assert site.drain() == []
    assert site.keys("pending") == ["1"]


def test_an_old_request_ends_as_a_named_failure(site: Site) -> None:
    path = site.drop("1")
    os.utime(path, (time.time() - 10 * 86400,) * 2)
    assert site.drain() == [("1", "failed")]
    assert "240 h old" in site.reason("1")


@pytest.mark.parametrize("content", [b"", b"job=1\0", b"x" * 300_000], ids=["empty", "no job", "long"])
def test_a_request_that_cannot_be_read_ends_as_a_named_failure(site: Site, content: bytes) -> None:
    site.drop("1").write_bytes(content)
    site.drop("2")
    assert sorted(site.drain()) == [("1", "failed"), ("2", "done")]
    assert "1.job" in site.reason("1")


def test_a_link_in_the_spool_is_not_followed(site: Site, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    site.spool.path("pending", "1", ".job").symlink_to(secret)
    assert site.drain() == [("1", "failed")]
    assert "s3cret" not in site.reason("1")


def test_a_spool_that_others_can_write_to_is_refused(site: Site) -> None:
    (site.spool.root / "pending").chmod(0o777)
    with pytest.raises(InputError, match="written by others"):
        site.drain()


def test_a_missing_spool_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        drain(Spool(tmp_path / "nowhere"), DrainOptions(), lambda _: None)


def test_a_request_that_kills_the_drain_is_not_tried_for_ever(site: Site) -> None:
    site.drop("1")
    site.spool.set_attempts("1", Attempts(3, 0.0))
    assert site.drain(n_attempts=3) == [("1", "failed")]
    assert "died in 3 attempts" in site.reason("1")


@pytest.mark.slow
def test_a_killed_drain_loses_no_request_and_does_not_start_it_twice(site: Site) -> None:
    fifo = site.drop_that_waits("1")
    site.drop("2")
    first = site.start_drain("--at-once=1")
    wait_until(lambda: site.keys("active") == ["1"])
    with fifo.open("w") as writer:  # opens once the worker reads
        first.kill()
        first.communicate()
        assert site.drain() == [("2", "done")], "the worker lives, so its request is not taken again"
        assert site.keys("active") == ["1"]
        writer.write("not a rank table")

    def taken_again() -> bool:
        fifo.unlink(missing_ok=True)
        site.let_retry_come("1")
        return ("1", "retried") in site.drain()

    wait_until(taken_again)
    assert site.keys("pending") == ["1"]
    assert site.spool.attempts("1").number == 2


@pytest.mark.slow
def test_a_request_whose_worker_outlived_its_drain_is_taken_by_a_drain_that_works_already(site: Site) -> None:
    orphaned = site.drop_that_waits("1")
    first = site.start_drain("--at-once=1")
    wait_until(lambda: site.keys("active") == ["1"])
    with orphaned.open("w") as writer:  # opens once the worker reads
        first.kill()
        first.communicate()
        busy = site.drop_that_waits("2")
        second = site.start_drain("--at-once=1")
        wait_until(lambda: site.keys("active") == ["1", "2"])
        writer.write("not a rank table")
    wait_until(lambda: site.keys("pending") == ["1"])
    assert site.keys("active") == ["2"]
    orphaned.unlink()
    release(busy)
    ended(second)


def test_a_drain_that_dies_between_two_steps_loses_no_request(site: Site) -> None:
    site.drop("1")
    site.spool.set_attempts("1", Attempts(1, 0.0))
    site.spool.move("1", "pending", "active")
    assert site.drain() == [("1", "done")]


def test_a_second_drain_ends_at_once(site: Site) -> None:
    with site.spool.drain_lock() as is_ours:
        assert is_ours
        second = site.start_drain()
        _, said = ended(second)
    assert second.returncode == 0
    assert "another drain" in said


@pytest.mark.slow
def test_no_more_than_the_limit_run_at_once(site: Site) -> None:
    fifos = [site.drop_that_waits(f"{number}") for number in (1, 2, 3)]
    process = site.start_drain("--at-once=2")
    wait_until(lambda: len(site.keys("active")) == 2)
    open_ends = [fifo.open("w") for fifo in fifos[:2]]
    assert site.keys("pending") == ["3"]
    for end in open_ends:
        end.close()
    release(fifos[2])
    ended(process)
    assert site.keys("active") == []


def test_a_drain_that_is_told_to_stop_puts_its_requests_back_uncounted(site: Site) -> None:
    fifo = site.drop_that_waits("1")
    process = site.start_drain()
    with fifo.open("w"):
        process.send_signal(signal.SIGTERM)
        ended(process)
    assert process.returncode == 130
    assert (site.keys("pending"), site.keys("active")) == (["1"], [])
    assert site.spool.attempts("1").number == 0
    with pytest.raises(OSError, match="No such device"):  # nobody reads it any more: the worker has ended
        os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)


def test_records_of_long_ago_are_removed(site: Site) -> None:
    site.drop("1")
    site.drain()
    record = site.spool.path("done", "1", ".json")
    os.utime(record, (0, 0))
    site.drain()
    assert not record.exists()


@pytest.mark.slow
def test_a_webhook_that_hangs_stops_no_drain(site: Site, tmp_path: Path) -> None:
    answers = threading.Event()
    with mailbox(hang=answers) as box:
        (tmp_path / "webhook").write_text(box.url)
        for number in range(1, 5):
            site.drop(f"{number}")
        process = site.start_drain("--tell=always", f"--webhook-file={tmp_path / 'webhook'}")
        wait_until(lambda: len(list((site.spool.root / "done").glob("*.json"))) == 4)
        assert len(box.received) <= 1, "they were done before the first message was answered"
        answers.set()
        ended(process)
        assert len(box.received) == 4
    assert [site.spool.reported(f"{number}") for number in range(1, 5)] == [""] * 4


def test_a_drain_with_nothing_to_do_ends_the_metrics_of_jobs_long_gone(site: Site, tmp_path: Path) -> None:
    directory = tmp_path / "textfile"
    directory.mkdir()
    place_metrics("cluster_analysis_ranks 8\n", "1", directory, keep_s=-1.0)
    ended(site.start_drain(f"--prometheus-dir={directory}"))
    assert [path.name for path in directory.iterdir()] == ["cluster_hook.prom"]
