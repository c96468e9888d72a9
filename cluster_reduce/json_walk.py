"""JSON taken apart member by member: what stands before a damaged place is read, and the place is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cluster_reduce.form import UnfitError

_SPACE = re.compile(r"[ \t\n\r]*")
_MARK = re.compile(r"[ \t\n\r]*([:,}])[ \t\n\r]*")
#: Tokens within which a file can end.
_CUT = re.compile(r"(?:tru?|fal?s?|nul?|[tfn]|-|[.eE][-+]?[0-9]*)?\Z")
_UNTERMINATED, _ESCAPE, _LONGEST_ESCAPE = "Unterminated string", "Invalid \\", 6


class DamagedError(UnfitError):
    """Why nothing of a file can be used: a kind, and values, as the facts of the analysis have them."""

    def __init__(self, kind: str, values: dict[str, Any]) -> None:
        super().__init__(kind, values)
        self.kind = kind
        self.values = values

    def __str__(self) -> str:
        """Return both for people."""
        return " ".join(
            [self.kind.replace("_", " "), *(f"{name}={one}" for name, one in self.values.items())]
        )


class Walk:
    """A place in a document that goes on from value to value.

    Raises:
        DamagedError: here and in all methods, at what is no JSON.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self.text = content.decode()
        except UnicodeDecodeError as error:
            raise DamagedError("not_utf8", {"byte": error.start}) from None
        self._is_ascii = len(self.text) == len(content)
        self._n_bytes = len(content)
        self.at = 0
        self._skip()

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the caller continues after the value."""
        if not self.text.startswith("{", self.at):
            raise DamagedError(
                "not_of_form", {"detail": f"{type(self.value()).__name__} in place of an object"}
            )
        self._skip(1)
        if self.text.startswith("}", self.at):
            self._skip(1)
            return
        while True:
            if not self.text.startswith('"', self.at):
                raise self._malformed(self.at, "no name of a member")
            key: str = self.value()
            self._mark(":")
            yield key
            if self._mark(",", "}") == "}":
                return

    def value(self) -> Any:
        """Return the value that begins here, and go on behind it."""
        try:
            found, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            is_escape_cut = error.msg.startswith(_ESCAPE) and error.pos + _LONGEST_ESCAPE > len(self.text)
            is_cut = is_escape_cut or error.msg.startswith(_UNTERMINATED)
            raise self._malformed(len(self.text) if is_cut else error.pos, error.msg) from None
        except RecursionError:
            raise DamagedError("not_json", {"detail": "too deeply nested"}) from None
        except ValueError as error:  # a number of thousands of digits
            raise DamagedError("not_json", {"detail": str(error)}) from None
        return found

    def end(self) -> None:
        """Take the end of the document."""
        self._skip()
        if self.at < len(self.text):
            raise self._not_json(self.at, "trailing characters")

    def bytes_at(self, places: list[int]) -> list[int]:
        """Return where characters lie in the file; the places rise."""
        if self._is_ascii:
            return places
        found, before, n_bytes = [], 0, 0
        for place in places:
            n_bytes += len(self.text[before:place].encode())
            before = place
            found.append(n_bytes)
        return found

    def _mark(self, *marks: str) -> str:
        """Take one of these marks, and the space around it."""
        match = _MARK.match(self.text, self.at)
        mark: str = match.group(1) if match else ""
        if match is None or mark not in marks:
            self._skip()
            raise self._malformed(self.at, f"no {marks[0]!r}")
        self.at = match.end()
        return mark

    def _skip(self, n: int = 0) -> None:
        match = _SPACE.match(self.text, self.at + n)
        self.at = match.end() if match else len(self.text)

    def _malformed(self, at: int, detail: str) -> DamagedError:
        if _CUT.match(self.text, at):
            return DamagedError("truncated", {"byte": self._n_bytes})
        return self._not_json(at, detail)

    def _not_json(self, at: int, detail: str) -> DamagedError:
        text = self.text
        rest = text.rstrip("\0")
        if len(rest) < len(text):
            byte = self._n_bytes - (len(text) - len(rest))
            return DamagedError("filled_with_nul", {"byte": byte, "n_bytes": self._n_bytes})
        (byte,) = self.bytes_at([at])
        return DamagedError("not_json_at", {"byte": byte, "n_bytes": self._n_bytes, "detail": detail})


#: NaN and Infinity, which Python's own JSON writes, are null.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
