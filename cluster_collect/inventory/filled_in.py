"""What stands in a value for something else: `%h` for the host, `$NAME` for a variable of this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cluster_collect.inventory.located import Located

_PLACE = re.compile(r"%[%h]|\$(?:([A-Z_][A-Z0-9_]*)|\{([A-Z_][A-Z0-9_]*)\})")


def variables_in(text: str) -> set[str]:
    """Return the names of the variables that stand in `text`."""
    return {match[1] or match[2] for match in _PLACE.finditer(text)} - {None}


def filled_in(where: Located, text: str, host: str, environment: Mapping[str, str]) -> str:
    """Return `text` with its places filled in.

    Raises:
        InputError: a variable is not set here.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] in ("%%", "%h"):
            return "%" if match[0] == "%%" else host
        name = match[1] or match[2]
        if not environment.get(name):
            raise where.wrong(f"{text!r} names the environment variable {name}, which is not set")
        return environment[name]

    return _PLACE.sub(value, text)
