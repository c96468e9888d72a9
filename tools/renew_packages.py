"""Writes docs/lab/layers.md, what each package may import, from the layers that hold the code.

python -m tools.renew_packages
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.layers import ALLOWED, GROUPS, ROOT, room_of

PAGE = ROOT / "docs" / "lab" / "layers.md"
PACKAGES_PAGE = ROOT / "docs" / "packages.md"
_ROW = re.compile(r"\| `([\w/]+)/` \| (.*) \|")
#: Every package may import it: no row says so.
_ALL_MAY = "cluster_run"
_HEAD = """\
# What each package may import

Made from `tests/layers.py` by `make gold`; `tests/test_layers.py` holds the code against it. What lives
where: [packages.md](../packages.md).

Every package may import `cluster_run`, itself, the packages in its row, and their subpackages. What
lies beside each other in a package imports in one direction, inside functions and for types too: there is no
cycle at any level. Names without backticks, like *the collector's values*, are `GROUPS` of `tests/layers.py`;
`OWNERS` there says which module may import which library.

| package | may import |
| --- | --- |
"""


def packages(text: str) -> Mapping[str, str]:
    """Return what docs/packages.md says of each package, by its path."""
    return {match.group(1): match.group(2) for match in map(_ROW.fullmatch, text.split("\n")) if match}


def page() -> str:
    """Return the page, with the packages in the order of docs/packages.md."""
    paths = packages(PACKAGES_PAGE.read_text("utf-8"))
    return _HEAD + "".join(f"| `{path}/` | {may_import(path.replace('/', '.'))} |\n" for path in paths)


def may_import(package: str) -> str:
    """Return what a package may import besides itself and `cluster_run`, for people."""
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
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
