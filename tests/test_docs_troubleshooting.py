"""docs/troubleshooting.md lists messages that the product really prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


def texts_of(node: ast.AST) -> Iterator[str]:
    """Each string of a module, with what is put into it as a sign that no message holds."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield re.sub(r"\{[^{}]*\}", "\0", one.value)
        elif isinstance(one, ast.Constant) and isinstance(one.value, bytes):
            yield one.value.decode("utf-8", "replace")
        elif isinstance(one, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in one.values)


@lru_cache(maxsize=1)
def product_texts() -> str:
    """All strings of the product, one a paragraph."""
    files = (path for package in ROOT.glob("cluster_*/") for path in package.rglob("*.py"))
    in_code = (text for path in files for text in texts_of(ast.parse(path.read_text("utf-8"))))
    tables = (path.read_text("utf-8") for path in (ROOT / "cluster_words").glob("*.json"))
    in_tables = (text for table in tables for text in re.findall(r'"((?:[^"\\]|\\.)*)"', table))
    return "\n\n".join([*in_code, *(re.sub(r"\{[^{}]*\}", "\0", text) for text in in_tables)])


def test_there_are_messages_of_each_command() -> None:
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_is_printed_by_the_product(message: str) -> None:
    """The words between the placeholders stand in one string of the code, in this order."""
    words = [re.escape(part.strip()) for part in message.split("…") if part.strip(" :(),")]
    assert re.search(r"[^\n]*?".join(words), product_texts()), message
