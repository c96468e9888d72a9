"""Posts one message to a chat tool or to a program of the site; the address is a secret and never shown."""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Literal

from cluster_run.errors import InputError

#: Who reads the message. `json` is for programs; the others are what each chat tool takes.
WebhookFormat = Literal["json", "slack", "mattermost", "teams", "discord", "feishu", "dingtalk", "wecom"]
FORMATS: tuple[WebhookFormat, ...] = (
    "json",
    "slack",
    "mattermost",
    "teams",
    "discord",
    "feishu",
    "dingtalk",
    "wecom",
)
#: The environment variable that holds the address where no file is named.
URL_VARIABLE = "CLUSTER_HOOK_WEBHOOK_URL"
DEADLINE_S = 10.0
#: The strictest of the chat tools (Discord) takes 2000 characters; they count differently, so stay below.
_MAX_TEXT = 1900
_LATE = "the webhook did not answer in time"


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
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{file}: the webhook's address cannot be read: {type(error).__name__}"
            ) from error
        source = str(file)
    else:
        url, source = os.environ.get(URL_VARIABLE, "").strip(), URL_VARIABLE
    if not url:
        if file is not None:
            raise InputError(f"{source} is empty", "write the webhook's address into it")
        return None
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or len(url.split()) != 1:
        raise InputError(f"{source} holds no http:// or https:// address")
    return Webhook(url, chosen)


def message_body(chosen: WebhookFormat, text: str, details: Mapping[str, object]) -> bytes:
    """Return the JSON that a chat tool takes for `text`, or that a program takes for `details`."""
    short = text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
    card = {
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "TextBlock", "text": short, "wrap": True}],
    }
    bodies: dict[WebhookFormat, Mapping[str, object]] = {
        "json": details,
        # `<!channel>` and `<@user>` in a job's name must stay text; `&<>` are all that Slack escapes.
        "slack": {"text": short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")},
        "mattermost": {"text": short},
        "teams": {
            "type": "message",
            "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
        },
        "discord": {"content": short, "allowed_mentions": {"parse": []}},
        "feishu": {"msg_type": "text", "content": {"text": short}},
        "dingtalk": {"msgtype": "text", "text": {"content": short}},
        "wecom": {"msgtype": "text", "text": {"content": short}},
    }
    return json.dumps(bodies[chosen]).encode()


def post(webhook: Webhook, text: str, details: Mapping[str, object], deadline_s: float = DEADLINE_S) -> str:
    """Post a message; return why it failed, without the address, or an empty string."""
    troubles: list[str] = []
    body = message_body(webhook.format, text, details)
    # A thread, because no socket option ends a name server that hangs, or an answer that comes byte by byte.
    poster = threading.Thread(target=lambda: troubles.append(_post(webhook, body, deadline_s)), daemon=True)
    poster.start()
    poster.join(deadline_s)
    return troubles[0] if troubles else _LATE


def _post(webhook: Webhook, body: bytes, deadline_s: float) -> str:
    request = urllib.request.Request(  # noqa: S310  find_webhook lets only http and https through
        webhook.url,
        data=body,
        headers={"Content-Type": "application/json", "User-Agent": "cluster-hook"},
        method="POST",
    )
    # Redirections would carry the message where nobody chose to send it.
    opener = urllib.request.build_opener(_NoRedirection())
    try:
        with opener.open(request, timeout=deadline_s) as response:
            answer = response.read(4096)
    except urllib.error.HTTPError as error:
        error.close()
        return f"the webhook answered {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        return _LATE if isinstance(reason, TimeoutError) else "the webhook cannot be reached"
    return _refusal(webhook.format, answer)


def _refusal(chosen: WebhookFormat, answer: bytes) -> str:
    """Some chat tools say no with status 200 and a code in the body."""
    key = {"feishu": "code", "dingtalk": "errcode", "wecom": "errcode"}.get(chosen)
    if key is None:
        return ""
    try:
        code = json.loads(answer).get(key, 0)
    except (ValueError, AttributeError):
        return ""
    return f"the webhook answered {key} {code}" if code else ""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        return None
