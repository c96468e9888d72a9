from __future__ import annotations

import html
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_run.errors import InputError
from cluster_tell.formats import FORMATS, WebhookFormat
from cluster_tell.webhook import Webhook, find_webhook, message_body, post
from tests.hook.http_server import a_server, mailbox


def test_a_message_arrives_as_json() -> None:
    with mailbox() as box:
        assert post(Webhook(box.url), "text", {"a": 1}) is None
        ((kind, body),) = box.received
    assert kind == "application/json"
    assert json.loads(body) == {"a": 1}


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        ("slack", ["text"]),
        ("mattermost", ["text"]),
        ("discord", ["content"]),
        ("feishu", ["content", "text"]),
        ("dingtalk", ["text", "content"]),
        ("wecom", ["text", "content"]),
        ("teams", ["attachments", 0, "content", "body", 0, "text"]),
    ],
)
def test_each_chat_tool_gets_the_text_where_it_looks(chosen: WebhookFormat, path: list[str | int]) -> None:
    found = json.loads(message_body(chosen, "job 12: slow", {}))
    for key in path:
        found = found[key]
    assert found == "job 12: slow"


_CHATS = [one for one in FORMATS if one != "json"]
_CALLS = ("@all", "@channel", "@here", "@everyone", "@所有人", "<!channel>", "<!here|x>", "<@U123>", "<@&7>")


def texts(value: object) -> list[str]:
    """Return every text of a JSON value."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("chosen", _CHATS)
def test_a_jobs_name_calls_nobody_in_any_chat(chosen: WebhookFormat) -> None:
    for call in (*_CALLS, '<at user_id="all">x</at>', "<at>all</at>"):
        body = json.loads(message_body(chosen, f"job 12 {call} (FAILED): slow", {}))
        sent = " ".join(texts(body))
        assert "job 12 " in sent
        assert "@" not in sent
        assert "<" not in html.unescape(sent)


def test_discord_is_told_to_call_nobody() -> None:
    assert json.loads(message_body("discord", "x", {}))["allowed_mentions"] == {"parse": []}


def test_a_program_gets_a_jobs_name_as_it_is() -> None:
    assert json.loads(message_body("json", "", {"name": "@all"})) == {"name": "@all"}


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("sign", ["x", "慢", "@"])
def test_a_long_message_stays_below_what_chat_tools_take(chosen: WebhookFormat, sign: str) -> None:
    body = json.loads(message_body(chosen, sign * 100_000, {}))
    assert len(json.dumps(body, ensure_ascii=False).encode()) < 2048 + 300  # what is around the text


@pytest.mark.parametrize("status", [301, 400, 403, 404, 500])
def test_a_refusal_is_said_without_the_secret_address(status: int) -> None:
    with mailbox(status=status) as box:
        trouble = post(Webhook(box.url), "text", {}, pause_s=0.01)
    assert trouble is not None
    assert str(status) in trouble.text
    assert "s3cret" not in repr(trouble)


@pytest.mark.parametrize(("status", "n"), [(503, 2), (429, 2), (200, 1), (403, 1), (404, 1)])
def test_what_may_pass_is_tried_once_more(status: int, n: int) -> None:
    with mailbox(status=status) as box:
        post(Webhook(box.url), "text", {}, pause_s=0.01)
        assert len(box.received) == n


def test_a_second_attempt_that_arrives_is_no_trouble() -> None:
    with mailbox(statuses=[503]) as box:
        assert post(Webhook(box.url), "text", {}, pause_s=0.01) is None
        assert len(box.received) == 2


@pytest.mark.parametrize(
    ("asked", "n"), [("0", 2), ("Thu, 01 Jan 1970 00:00:00 GMT", 2), ("3600", 1), ("soon", 2)]
)
def test_a_server_that_asks_for_a_pause_gets_it_or_is_left_alone(asked: str, n: int) -> None:
    with mailbox(statuses=[429], headers={"Retry-After": asked}) as box:
        trouble = post(Webhook(box.url), "text", {}, pause_s=0.01)
        assert len(box.received) == n
    assert (trouble is None) == (n == 2)
    assert trouble is None or (trouble.may_pass and trouble.after_s == 3600)


def test_a_server_of_the_site_s_own_authority_is_trusted_where_that_is_named_and_else_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, authority = a_server(tmp_path)
    with mailbox(tls=tls) as box:
        assert "cannot be reached" in str(post(Webhook(box.url), "text", {}, pause_s=0.01))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert post(Webhook(box.url), "text", {}) is None
        assert len(box.received) == 1


def test_a_redirection_is_not_followed() -> None:
    with mailbox() as elsewhere, mailbox(status=302, location=elsewhere.url) as box:
        assert "302" in str(post(Webhook(box.url), "text", {}))
        assert elsewhere.received == []


@pytest.mark.parametrize(
    ("chosen", "answer"), [("feishu", b'{"code": 9499}'), ("dingtalk", b'{"errcode": 310000}')]
)
def test_a_refusal_with_status_200_is_one_all_the_same(chosen: WebhookFormat, answer: bytes) -> None:
    with mailbox(answer=answer) as box:
        assert "code" in str(post(Webhook(box.url, chosen), "text", {}))


@pytest.mark.parametrize(
    ("why", "shown"),
    [("sign match fail", "feishu: sign match fail"), ("no hook\n at /hook/s3cret-token", "feishu")],
)
def test_a_refusal_says_why_unless_that_holds_the_address(why: str, shown: str) -> None:
    with mailbox(answer=json.dumps({"code": 19021, "msg": why}).encode()) as box:
        trouble = post(Webhook(f"{box.url}-token", "feishu"), "text", {})
    assert trouble is not None
    assert trouble.text == f"the webhook answered code {shown.replace('feishu', '19021')}"


def test_a_webhook_that_hangs_is_given_up_at_the_deadline() -> None:
    with mailbox(hang=threading.Event()) as box:
        assert "in time" in str(post(Webhook(box.url), "text", {}, deadline_s=0.2))


@contextmanager
def answering(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """Run a server of one connection, which it does not greet by itself; yields its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        server = threading.Thread(target=accept, daemon=True)
        server.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/s3cret"
        server.join()


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 banana\r\n\r\n", b""])
def test_what_answers_something_else_is_a_trouble_and_no_failure(answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(answer)

    with answering(serve) as url:
        assert "cannot be reached" in str(post(Webhook(url), "text", {}))


def test_an_answer_that_never_ends_is_given_up_at_the_deadline() -> None:
    given_up = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not given_up.wait(0.05):
            connection.sendall(b"x")

    with answering(serve) as url:
        assert "in time" in str(post(Webhook(url), "text", {}, deadline_s=0.5))
        given_up.set()


def test_a_webhook_that_is_not_there_is_a_trouble() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/s3cret"
        trouble = post(Webhook(url), "text", {}, pause_s=0.01)
    assert "cannot be reached" in str(trouble)
    assert "s3cret" not in str(trouble)


def test_the_address_comes_from_a_file_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTER_HOOK_WEBHOOK_URL", "https://chat.example/env")
    file = tmp_path / "webhook"
    file.write_text("https://chat.example/file\n")
    assert find_webhook(file, "slack") == Webhook("https://chat.example/file", "slack")
    assert find_webhook(None, "json") == Webhook("https://chat.example/env", "json")


def test_without_an_address_nobody_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_HOOK_WEBHOOK_URL", raising=False)
    assert find_webhook(None, "json") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((one, "webhook") for one in ("", "chat.example/s3cret", "file:///etc/s3cret")),
        *((one, "webhook") for one in ("http://a b/s3cret", "http:///s3cret")),
        ("https://chat.example/s3cret\xff", "the webhook's address is no text"),
    ],
)
def test_a_file_without_an_address_is_refused_by_name_without_its_content(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "webhook"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=said) as caught:
        find_webhook(file, "json")
    assert "s3cret" not in str(caught.value)


def test_the_address_never_shows_in_a_repr() -> None:
    assert "s3cret" not in repr(Webhook("https://chat.example/s3cret"))
