"""Writes the names that a schema allows, and docs/fields.md, the reference of all fields, from the schemas.

python -m tools.renew_fields
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_type_hints

from cluster_analysis.judge.baseline import Comparison
from cluster_run.findings import FindingsDocument
from cluster_run.manifest import Manifest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fields.md"
#: What each file holds.
SHAPES = {"findings": FindingsDocument, "comparison": Comparison, "manifest": Manifest}


def schema(name: str) -> dict[str, Any]:
    """Return a JSON Schema that ships with the package."""
    text = files("cluster_run").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def schema_path(name: str) -> Path:
    """Return where a schema lies."""
    return ROOT / "cluster_run" / "schemas" / f"{name}.schema.json"


def schema_text(name: str) -> str:
    """Return the text of a schema, with the names that the program writes."""
    found = schema(name)
    _name(found, SHAPES[name])
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _name(node: dict[str, Any], kind: Any) -> None:
    """Give each field below that holds one of several names all that its type has."""
    if "enum" in node:
        node["enum"] = list(_names(kind)) or node["enum"]
    items = node.get("items", {})
    for one in get_args(kind):
        for inner in (items, *items.get("anyOf", ())):
            _name(inner, one)
    hints = get_type_hints(kind) if isinstance(kind, type) else {}
    for name, field in node.get("properties", {}).items():
        _name(field, hints.get(name))


def _names(kind: Any) -> Iterator[str]:
    for one in get_args(kind):
        yield from [one] if isinstance(one, str) else _names(one)


def reference() -> str:
    """Return the page."""
    lines = [
        "# Fields of the JSON files",
        "",
        "From the JSON Schemas in [`cluster_run/schemas/`](../cluster_run/schemas) by `make gold`; tests",
        "hold both against what is written. Fields may be added; readers ignore what they do not know.",
    ]
    for name in SHAPES:
        found = schema(name)
        lines += ["", f"## {found['title']}", "", found["description"], ""]
        lines += ["| field | type | is |", "| --- | --- | --- |"]
        lines += [f"| `{path}` | {kind} | {text} |" for path, kind, text in fields(found, "")]
    return "\n".join(lines) + "\n"


def fields(node: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Return path, type and meaning of each field below `node`; an array's items are `name[]`."""
    for name, field in node.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, _type(field), field["description"].replace("|", "\\|")
        yield from fields(field, f"{path}.")
        for item in (field.get("items", {}), *field.get("items", {}).get("anyOf", ())):
            yield from fields(item, f"{path}[].")


def _type(field: dict[str, Any]) -> str:
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return " or ".join(kinds)


if __name__ == "__main__":
    for name in SHAPES:
        schema_path(name).write_text(schema_text(name), encoding="utf-8")
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE)
