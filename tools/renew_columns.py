"""Writes cluster_analysis/tables/columns.py, names of tables and columns for editors and type checkers.

python -m tools.renew_columns

They come from the schemas, and what a table has a row for from the comment above its schema.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from cluster_analysis.api import FINDING_COLUMNS
from cluster_analysis.tables import described, fused, schema
from cluster_analysis.tables.written import WRITTEN

ROOT = Path(__file__).parents[1]
COLUMNS = ROOT / "cluster_analysis" / "tables" / "columns.py"
_MODULES = {
    "columns_measured": ("Columns of what ranks recorded, and of what was matched between them.", (schema,)),
    "columns_described": ("Columns of what describes the job, and of the findings.", (fused, described)),
}
_HEAD = '''\
"""Names of tables and columns, for editors and type checkers: `run.steps[Steps.computing_us]`.

Each class is a table of `run.frame(…)`, and of `tables/*.parquet`; its attributes are the columns, with the
type beside each that is not float64. Times are microseconds (`_us`), time stamps nanoseconds (`_ns`), sizes
bytes (`_bytes`); ranks are global. A missing value is null, never 0.
Made by `make gold` from the schemas in `cluster_analysis.tables`.
"""

from typing import Literal
'''
#: The comment above a schema, and the schema's name.
_SAID = re.compile(r"((?:^#: .*\n)+)^([A-Z_0-9]+) = ", re.MULTILINE)
_WIDTH = 106


def made() -> dict[Path, str]:
    """Return each file and its text."""
    files, imports, classes = dict[Path, str](), "", list[str]()
    for name, (sentence, sources) in _MODULES.items():
        said = {one: text for source in sources for one, text in _sentences(source)}
        there = {table: said[id(one)] for table, one in WRITTEN.items() if id(one) in said}
        lines = [f'"""{sentence}"""', "", "from typing import Final"]
        for table, text in there.items():
            columns = [(field.name, _type(field.type)) for field in WRITTEN[table]]
            lines += _class(table, f'`run.frame("{table}")`: {text}', columns)
        own = list(map(_class_name, there))
        if name == "columns_described":
            plain = [(column, "") for column in FINDING_COLUMNS]
            lines += _class("findings", "`run.findings`: one row a finding, the costliest first.", plain)
            own.append("Findings")
        files[ROOT / "cluster_analysis" / "tables" / f"{name}.py"] = _formatted("\n".join(lines))
        imported = ", ".join(sorted(own, key=str.casefold))
        imports = f"from cluster_analysis.tables.{name} import {imported}\n{imports}"
        classes += own
    tables = f"#: What `run.frame` takes.\nTableName = Literal[{', '.join(map(repr, WRITTEN))}]"
    exported = f"__all__ = {sorted((*classes, 'TableName'))!r}"
    files[COLUMNS] = _formatted(f"{_HEAD}\n{imports}\n{tables}\n\n{exported}\n")
    return files


def _sentences(source: ModuleType) -> Iterator[tuple[int, str]]:
    """Return the comment above each schema of a module, by the schema's identity."""
    for comment, name in _SAID.findall(Path(str(source.__file__)).read_text("utf-8")):
        text = " ".join(comment.replace("#:", " ").split())
        yield id(getattr(source, name)), text[0].lower() + text[1:]


def _class(table: str, sentence: str, columns: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"class {_class_name(table)}:"
    yield textwrap.fill(f'"""{sentence}"""', _WIDTH, initial_indent="    ", subsequent_indent="    ")
    for column, kind in columns:
        yield f'    {column}: Final = "{column}"{f"  # {kind}" if kind else ""}'


def _class_name(table: str) -> str:
    return table.title().replace("_", "")


def _type(kind: pa.DataType) -> str:
    if pa.types.is_float64(kind):
        return ""
    if pa.types.is_dictionary(kind):
        return f"category of {kind.value_type}"
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "columns.py", "-"]
    return subprocess.run(  # noqa: S603 - our own words
        command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
        print(path)
