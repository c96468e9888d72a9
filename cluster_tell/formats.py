"""The forms of messages. Imports nothing: parsers know them."""

from __future__ import annotations

from typing import Literal, get_args

#: Reader of the message. `json` is for programs; the others are what each chat tool takes.
WebhookFormat = Literal["json", "slack", "mattermost", "teams", "discord", "feishu", "dingtalk", "wecom"]
FORMATS: tuple[WebhookFormat, ...] = get_args(WebhookFormat)
