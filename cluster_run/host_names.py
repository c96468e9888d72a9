"""Keeps the names and addresses of hosts out of what others read.

An error on a host names it. In findings, pages, chats and annotations hosts have their numbers only,
unless addresses are asked for.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

_HIDDEN = "(an address)"
#: What an address looks like, wherever it stands.
IPV4 = r"(?:\d{1,3}\.){3}\d{1,3}"
IPV6 = r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%\w+)?"
_ADDRESS = re.compile(rf"(?<![\w.]){IPV4}(?![\w.]*\w)|(?<![\w:.]){IPV6}(?![\w:])")


class HostNames:
    """The names of a job's hosts in the order of their numbers."""

    def __init__(self, names: Sequence[Iterable[str]], others: Iterable[str] = ()) -> None:
        """Take all names of each host: its node name, the rank table's name, its addresses; and the names of
        hosts whose numbers are not known.
        """
        self._numbers: dict[str, str] = {}
        for number, of_one in enumerate(names, start=1):
            for name in of_one:
                self._add(name, f"host {number}")
        for name in others:
            self._add(name, "a host")
        longest_first = sorted(self._numbers, key=lambda name: (-len(name), name))
        known = "|".join(map(re.escape, longest_first))
        self._known = re.compile(rf"(?<![\w])(?:{known})(?!\w)", re.IGNORECASE) if known else None

    def _add(self, name: str, shown: str) -> None:
        self._numbers.setdefault(name.lower(), shown)
        if not is_address(name):
            self._numbers.setdefault(name.partition(".")[0].lower(), shown)

    def hidden(self, text: str) -> str:
        """Return the text with numbers in place of names, and without any other address."""
        if self._known is not None:
            text = self._known.sub(lambda match: self._numbers[match.group().lower()], text)
        return _ADDRESS.sub(lambda match: _HIDDEN if is_address(match.group()) else match.group(), text)


def is_address(text: str) -> bool:
    """Whether it is an IP address, with a zone or without."""
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True
