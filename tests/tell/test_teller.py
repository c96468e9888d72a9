"""Telling holds nobody up, gives up, and loses nothing that a successor may send."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from cluster_run.errors import ExitCode
from cluster_tell.outcome import Outcome
from cluster_tell.teller import N_FAILURES, Teller, TellOptions
from cluster_tell.webhook import Webhook
from tests.commands import wait_until
from tests.hook.http_server import Mailbox, mailbox


def an_outcome(job: str) -> Outcome:
    return Outcome(job, "train", "FAILED", "failed", ExitCode.FAILED, reason="why")


def jobs_of(box: Mailbox) -> list[str]:
    return [json.loads(body)["job"]["id"] for _, body in box.received]


@pytest.fixture
def said() -> dict[str, str]:
    return {}


def options_for(url: str) -> TellOptions:
    return TellOptions("always", Webhook(url))


@pytest.mark.parametrize("lasts", [True, False])
def test_each_outcome_is_told_once_in_their_order(tmp_path: Path, said: dict[str, str], lasts: bool) -> None:
    backlog = tmp_path if lasts else None
    with mailbox() as box:
        with Teller(options_for(box.url), said.__setitem__, backlog) as teller:
            for job in "1234":
                teller.tell(job, an_outcome(job))
        assert jobs_of(box) == list("1234")
    assert said == dict.fromkeys("1234", "")
    assert list(tmp_path.glob("*.json")) == []


def test_a_webhook_that_hangs_holds_nobody_up(said: dict[str, str]) -> None:
    answers = threading.Event()
    with mailbox(hang=answers) as box:
        teller = Teller(options_for(box.url), said.__setitem__)
        for job in "1234":
            teller.tell(job, an_outcome(job))
        assert len(box.received) <= 1, "all four were told before the first was answered"
        answers.set()
        teller.close()
        assert jobs_of(box) == list("1234")


def test_a_webhook_that_always_fails_is_given_up_and_the_rest_is_said_to_be_lost(
    said: dict[str, str],
) -> None:
    with mailbox(status=403) as box:
        with Teller(options_for(box.url), said.__setitem__) as teller:
            for job in "123456":
                teller.tell(job, an_outcome(job))
        assert len(box.received) == N_FAILURES
    assert set(said) == set("123456")
    assert all("no message was sent" in trouble for trouble in said.values())


def test_what_a_webhook_did_not_take_is_sent_by_the_next_process(
    tmp_path: Path, said: dict[str, str]
) -> None:
    with mailbox(status=503, headers={"Retry-After": "0"}) as box:
        with Teller(options_for(box.url), said.__setitem__, tmp_path) as teller:
            for job in "12345":
                teller.tell(job, an_outcome(job))
        assert len(box.received) == 2 * N_FAILURES
    assert all("tried again later" in trouble for trouble in said.values())
    with mailbox() as box:
        with Teller(options_for(box.url), said.__setitem__, tmp_path):
            pass
        assert jobs_of(box) == list("12345")
    assert said == dict.fromkeys("12345", "")


def test_what_a_webhook_refuses_is_not_sent_again(tmp_path: Path, said: dict[str, str]) -> None:
    with mailbox(status=403) as box, Teller(options_for(box.url), said.__setitem__, tmp_path) as teller:
        teller.tell("1", an_outcome("1"))
    assert "403" in said["1"]
    assert list(tmp_path.glob("*.json")) == []


def test_two_processes_send_nothing_twice(tmp_path: Path, said: dict[str, str]) -> None:
    answers = threading.Event()
    with mailbox(hang=answers) as box:
        first = Teller(options_for(box.url), said.__setitem__, tmp_path)
        first.tell("1", an_outcome("1"))
        wait_until(lambda: box.received)
        with Teller(options_for(box.url), said.__setitem__, tmp_path) as second:
            second.tell("2", an_outcome("2"))
        answers.set()
        first.close()
        assert jobs_of(box) == ["1", "2"]


def test_a_backlog_that_cannot_be_used_is_said_and_stops_nobody(tmp_path: Path, said: dict[str, str]) -> None:
    (tmp_path / "file").write_text("")
    with mailbox() as box, Teller(options_for(box.url), said.__setitem__, tmp_path / "file") as teller:
        teller.tell("1", an_outcome("1"))
    assert "no message was sent" in said["1"]
    assert "no message can be sent" in said["messages"]


def test_an_unreadable_leftover_costs_nobody_else_a_message(tmp_path: Path, said: dict[str, str]) -> None:
    (tmp_path / "0.json").write_text("not an outcome")
    with mailbox() as box:
        with Teller(options_for(box.url), said.__setitem__, tmp_path) as teller:
            teller.tell("1", an_outcome("1"))
        assert jobs_of(box) == ["1"]
    assert "not an outcome" in said["0"]
