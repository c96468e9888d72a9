"""Writes docs/modules.md, the list of all modules, from the first lines of their docstrings.

python -m tools.renew_modules
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "modules.md"
_HEAD = """# The modules

What each module is for: the first lines of their docstrings, in the order of [the packages](packages.md).
To renew it: `python -m tools.renew_modules`, or `make gold`.
"""


def reference() -> str:
    """Return the page: a table for each package that docs/packages.md has a row of."""
    packages = re.findall(r"(?m)^\| `([\w/]+)/` \|", (ROOT / "docs" / "packages.md").read_text("utf-8"))
    lines = [_HEAD]
    for package in packages:
        rows = [f"| `{path.stem}` | {first} |" for path, first in first_lines(ROOT / package)]
        lines += [f"## {package}", "", "| module | is for |", "| --- | --- |", *rows, ""] if rows else []
    return "\n".join(lines)


def first_lines(package: Path) -> Iterator[tuple[Path, str]]:
    """Give each module of a package that is not empty, with the first line of its docstring."""
    for path in sorted(package.glob("*.py")):
        if text := path.read_text("utf-8"):
            told = (ast.get_docstring(ast.parse(text)) or "\n").splitlines()[0]
            yield path, told.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE)
