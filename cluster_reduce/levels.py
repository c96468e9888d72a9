"""Steps, levels and operators: the outer form that both communication files share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster_reduce.form import UnfitError
from cluster_reduce.strict_json import object_of, strict_json

_STEP = re.compile(r"(?:step)?([0-9]{1,18})|step")
_TOTAL_PREFIX = "Total"


def levels(content: bytes) -> Iterator[tuple[int, bool, dict[str, dict[str, Any]]]]:
    """Yield step, whether it is the level of two ranks, and the operators without totals.

    Raises:
        UnfitError: the file has another form.
    """
    document = strict_json(content)
    if not document:
        raise UnfitError("no step")
    for name, found in document.items():
        match = _STEP.fullmatch(name)
        if match is None or not set(object_of(found)) <= {"p2p", "collective"}:
            raise UnfitError("not steps with levels")
        for level in ("p2p", "collective"):
            operators = object_of(found.get(level, {}))
            kept = {
                key: object_of(value) for key, value in operators.items() if not key.startswith(_TOTAL_PREFIX)
            }
            yield int(match.group(1) or 0), level == "p2p", kept
