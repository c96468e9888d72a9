"""Writes into docs/packages.md what each package may import, from the layers that hold the code.

python -m tools.renew_packages
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.layers import ALLOWED, GROUPS, ROOT, room_of

PAGE = ROOT / "docs" / "packages.md"
_ROW = re.compile(r"\| `([\w/]+)/` \| (.*) \| .* \|")
#: Every package may import it: no row says so.
_ALL_MAY = "cluster_run"


def renewed(text: str) -> str:
    """Return the page with the last column of each row made anew."""
    return "\n".join(map(_renewed_line, text.split("\n")))


def packages(text: str) -> Mapping[str, str]:
    """Return what the page says of each package, by its path."""
    return {match.group(1): match.group(2) for match in map(_ROW.fullmatch, text.split("\n")) if match}


def _renewed_line(line: str) -> str:
    match = _ROW.fullmatch(line)
    if match is None:
        return line
    path, what = match.groups()
    return f"| `{path}/` | {what} | {may_import(path.replace('/', '.'))} |"


def may_import(package: str) -> str:
    """Return what a package may import beside itself and `cluster_run`, for people."""
    rooms = set(ALLOWED[room_of(package)]) - {package, _ALL_MAY}
    said = []
    for name, group in GROUPS.items():
        if group <= rooms:
            rooms -= group
            said.append(name)
    root = package.partition(".")[0]
    order = list(ALLOWED)
    in_order = sorted(rooms, key=lambda room: (order.index(room_of(room)), room))
    said += [f"`{room.removeprefix(f'{root}.').replace('.', '/')}`" for room in in_order]
    return ", ".join(said) or "–"


def main() -> int:
    """Write the page."""
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
