"""All sentences and words, as files of JSON beside this module: tables of both languages by key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

#: The same text in English and in Chinese, with the same placeholders in braces.
Template = tuple[str, str]


@cache
def texts(file: str) -> Mapping[str, Mapping[Any, Template]]:
    """Return the tables of a file by name; `<name>` in a text stands for that one of the table `shared`."""
    tables: dict[str, dict[str, list[str]]] = json.loads(
        Path(__file__).with_name(f"{file}.json").read_text("utf-8")
    )
    shared = tables.pop("shared", {})

    def whole(text: str, language: int) -> str:
        for name, both in shared.items():
            text = text.replace(f"<{name}>", both[language])
        return text

    return {
        name: {key: (whole(english, 0), whole(chinese, 1)) for key, (english, chinese) in table.items()}
        for name, table in tables.items()
    }
