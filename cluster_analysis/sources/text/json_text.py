"""JSON files: whole bytes, typed decoding, and where exactly a bad one is bad."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from cluster_analysis.sources.errors import BadFileError, as_bad_file
from cluster_run.facts import Fact, fact

_T = TypeVar("_T")
_BYTE = re.compile(r"\(byte (\d+)\)")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
BOM = b"\xef\xbb\xbf"
#: What Python's own JSON writes for numbers that are none.
_NO_NUMBER = re.compile(rb"[:,[]\s*(?:NaN|-?Infinity)\b")


def read_bytes(path: Path) -> bytes:
    """Return a file's content without the mark of its encoding; see `read_with_offset`."""
    return read_with_offset(path)[0]


def read_with_offset(path: Path) -> tuple[bytes, int]:
    """Return a file's content, and where in the file it begins: behind the mark of its encoding.

    Raises:
        BadFileError: it is missing, unreadable, empty or UTF-16.
    """
    # Whole at once: nothing to keep in a buffer.
    with as_bad_file(), open(path, "rb", 0) as file:
        content = file.read()
    if content.startswith(_UTF16):
        raise BadFileError(fact("utf16"))
    if not content or content.isspace():
        raise BadFileError(fact("blank", n_bytes=len(content)) if content else fact("empty"))
    rest = content.removeprefix(BOM)
    return rest, len(content) - len(rest)


def decode(content: bytes | memoryview, kind: type[_T]) -> _T:
    """Return what JSON holds as a value of this type; NaN and Infinity are null.

    Raises:
        BadFileError: not JSON, cut off, or not of that type; with the byte or the place in the document.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise BadFileError(fact("not_of_form", detail=str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if has_no_number(content):
            with suppress(ValueError, RecursionError):
                read = json.loads(bytes(content), parse_constant=lambda _: None)
                return decode(json.dumps(read).encode(), kind)
        raise BadFileError(_why_malformed(bytes(content), error)) from error


def has_no_number(content: bytes | memoryview) -> bool:
    """Return whether JSON holds NaN or Infinity, which nothing but Python reads."""
    text = bytes(content)
    # These words first: an expression takes ten times as long to find that there is none.
    return (b"NaN" in text or b"Infinity" in text) and bool(_NO_NUMBER.search(text))


def _why_malformed(content: bytes, error: Exception) -> Fact:
    text = str(error)
    found = _BYTE.search(text)
    is_at_end = found is not None and int(found.group(1)) >= len(content)
    if "truncated" in text or (is_at_end and "trailing" not in text):
        return fact("truncated", byte=len(content))
    padding = content.rstrip(b"\0")
    if len(padding) < len(content):
        return fact("filled_with_nul", byte=len(padding), n_bytes=len(content))
    if isinstance(error, UnicodeDecodeError):
        return fact("not_utf8", byte=error.start)
    if found:
        return fact("not_json_at", byte=int(found.group(1)), n_bytes=len(content), detail=text)
    return fact("not_json", detail=text)
