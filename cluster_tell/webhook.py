"""Posts one message to a chat tool or to a program of the site; the address is a secret and never shown."""

from __future__ import annotations

import contextlib
import json
import os
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from cluster_run.errors import InputError, spoken
from cluster_run.files import json_of
from cluster_tell.formats import WebhookFormat
from cluster_tell.outcome import one_line

#: The environment variable that holds the address where no file is named.
URL_VARIABLE = "CLUSTER_HOOK_WEBHOOK_URL"
DEADLINE_S = 10.0
#: The strictest of the chat tools take 2048 bytes of UTF-8 (WeCom) and 2000 characters (Discord).
_MAX_BYTES = 1900
#: Characters that are shown of what a chat tool says when it takes no message.
_MAX_SAID = 120
#: A part of the address that is as long may be what makes it a secret.
_SECRET = 8
#: Before the second attempt.
PAUSE_S = 3.0
#: Longest pause that a server may ask for.
LONGEST_PAUSE_S = 60.0
#: Answers that a second attempt may better.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Webhook:
    """Where messages go. The address never shows in a repr."""

    url: str = field(repr=False)
    format: WebhookFormat = "json"


def find_webhook(file: Path | None, chosen: WebhookFormat) -> Webhook | None:
    """Return the webhook of `file`, else of the environment; None where neither names one.

    Raises:
        InputError: the file cannot be read or holds no http(s) address.
    """
    if file is not None:
        try:
            url = file.read_text().strip()
        except OSError as error:
            raise InputError(f"{file}: the webhook's address cannot be read: {spoken(error)}") from error
        except UnicodeDecodeError:  # whose text holds a part of the secret
            raise InputError(f"{file}: the webhook's address is no text") from None
        source = str(file)
    else:
        url, source = os.environ.get(URL_VARIABLE, "").strip(), URL_VARIABLE
    if not url:
        if file is not None:
            raise InputError(f"{source} is empty", "write the webhook's address into it")
        return None
    if not is_http(url):
        raise InputError(f"{source} holds no http:// or https:// address")
    return Webhook(url, chosen)


def is_http(url: str) -> bool:
    """Whether a server can be asked by it."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # whose text holds a part of it, and that may be a secret
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(url.split()) == 1


def message_body(chosen: WebhookFormat, text: str, details: Mapping[str, object]) -> bytes:
    """Return the JSON that a chat tool takes for `text`, or that a program takes for `details`."""
    short = _cut(_calling_nobody(text))
    return json.dumps(details if chosen == "json" else _CHATS[chosen].body(short)).encode()


def _cut(text: str) -> str:
    whole = text.encode()
    return text if len(whole) <= _MAX_BYTES else whole[:_MAX_BYTES].decode(errors="ignore") + "…"


def _as_card(text: str) -> Mapping[str, object]:
    card = {
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "TextBlock", "text": text, "wrap": True}],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


class _Chat(NamedTuple):
    """A chat tool: what it takes for a text. Some say no with status 200, a number and why in `refusal`."""

    body: Callable[[str], Mapping[str, object]]
    refusal: tuple[str, str] | None = None


_CHATS: Mapping[WebhookFormat, _Chat] = {
    # `&<>` are all that Slack wants escaped; there is no `<` any more.
    "slack": _Chat(lambda text: {"text": text.replace("&", "&amp;").replace(">", "&gt;")}),
    "mattermost": _Chat(lambda text: {"text": text}),
    "teams": _Chat(_as_card),
    "discord": _Chat(lambda text: {"content": text, "allowed_mentions": {"parse": []}}),
    "feishu": _Chat(lambda text: {"msg_type": "text", "content": {"text": text}}, ("code", "msg")),
    "dingtalk": _Chat(lambda text: {"msgtype": "text", "text": {"content": text}}, ("errcode", "errmsg")),
    "wecom": _Chat(lambda text: {"msgtype": "text", "text": {"content": text}}, ("errcode", "errmsg")),
}


def _calling_nobody(text: str) -> str:
    """Return the text with signs that look the same and mean nothing in place of those that call people.

    Anybody can name a job `@all`, `<!channel>` or `<at user_id="all">`; each chat tool knows some of these.
    """
    return text.replace("@", "＠").replace("<", "＜")


@dataclass(frozen=True)
class Trouble:
    """Why a message did not arrive, and whether it may later; `after_s` is when the server said so."""

    text: str
    may_pass: bool
    after_s: float | None = None


#: The message may have arrived, so it is not sent again.
_LATE = Trouble("the webhook did not answer in time", may_pass=False)


def post(
    webhook: Webhook,
    text: str,
    details: Mapping[str, object],
    deadline_s: float = DEADLINE_S,
    pause_s: float = PAUSE_S,
) -> Trouble | None:
    """Post a message; return why it failed, without the address, or None.

    A passing failure is tried once more: no connection, too many requests, a restarting server. That is after
    a pause, or when the server says (`Retry-After`), unless that time is too long to wait.
    """
    body = message_body(webhook.format, text, details)
    trouble = _post_in_time(webhook, body, deadline_s)
    if trouble is not None and trouble.may_pass:
        after_s = pause_s if trouble.after_s is None else trouble.after_s
        if after_s > LONGEST_PAUSE_S:
            return trouble
        time.sleep(after_s)
        trouble = _post_in_time(webhook, body, deadline_s)
    return trouble


def _post_in_time(webhook: Webhook, body: bytes, deadline_s: float) -> Trouble | None:
    ends: list[Trouble | None] = []
    # A thread, because no socket option ends a name server that hangs, or an answer that comes byte by byte.
    poster = threading.Thread(target=lambda: ends.append(_post(webhook, body, deadline_s)), daemon=True)
    poster.start()
    poster.join(deadline_s)
    return ends[0] if ends else _LATE


def _post(webhook: Webhook, body: bytes, deadline_s: float) -> Trouble | None:
    request = urllib.request.Request(  # noqa: S310  find_webhook lets only http and https through
        webhook.url,
        data=body,
        headers={"Content-Type": "application/json", "User-Agent": "cluster-hook"},
        method="POST",
    )
    opener = urllib.request.build_opener(NoRedirection(), urllib.request.HTTPSHandler(context=tls_context()))
    try:
        with opener.open(request, timeout=deadline_s) as response:
            answer = response.read(4096)
    except urllib.error.HTTPError as error:
        error.close()
        after_s = seconds_until(error.headers.get("Retry-After", ""))
        return Trouble(f"the webhook answered {error.code}", error.code in _PASSING, after_s)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return _LATE
        # Only what fails before the message is sent comes as this error.
        never_sent = isinstance(error, urllib.error.URLError)
        return Trouble("the webhook cannot be reached", may_pass=never_sent)
    refusal = _refusal(webhook, answer)
    return Trouble(refusal, may_pass=False) if refusal else None


def seconds_until(text: str) -> float | None:
    """Return the seconds that a server asks to wait: it says their number, or a date."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    with contextlib.suppress(ValueError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _refusal(webhook: Webhook, answer: bytes) -> str:
    chat = None if webhook.format == "json" else _CHATS[webhook.format]
    if chat is None or chat.refusal is None:
        return ""
    code_key, why_key = chat.refusal
    try:
        said = json_of(answer)
        code, why = said.get(code_key, 0), str(said.get(why_key, ""))
    except (ValueError, AttributeError):
        return ""
    if not code:
        return ""
    # An answer may repeat what it was asked; the address is the secret.
    is_secret = any(part in why for part in re.split(r"[/?&=]", webhook.url)[3:] if len(part) >= _SECRET)
    shown = "" if is_secret or not why else f": {one_line(why[:_MAX_SAID])}"
    return f"the webhook answered {code_key} {code}{shown}"


def tls_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Return how a server is known: by an authority of `ca_file`, else of the system.

    Authorities that sites and Kubernetes made for themselves often lack extensions that Python asks for since
    3.13; OpenSSL and the sites' other clients do not.

    Raises:
        OSError: it is no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class NoRedirection(urllib.request.HTTPRedirectHandler):
    """Takes a redirection for an answer: following it would send a secret where it was not meant to go."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        """Follow none."""
