"""Writes the names that a schema allows, and docs/fields.md, the reference of all fields, from the schemas.

python -m tools.renew_fields
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from cluster_run.findings import Cause, Confidence, Pattern, Severity, Verdict
from cluster_run.kinds import KINDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fields.md"
FINDINGS = ROOT / "cluster_run" / "schemas" / "findings.schema.json"
#: Fields of a finding that hold one of several names.
_NAMED = {
    "kind": tuple(KINDS),
    "severity": get_args(Severity),
    "cause": get_args(Cause),
    "pattern": get_args(Pattern),
    "confidence": get_args(Confidence),
}
NAMES = ("findings", "comparison", "manifest")


def schema(name: str) -> dict[str, Any]:
    """Return a JSON Schema that ships with the package."""
    text = files("cluster_run").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def findings_schema() -> str:
    """Return the text of the schema of findings.json, with the names that the program writes."""
    found = schema("findings")
    found["properties"]["verdict"]["enum"] = list(get_args(Verdict))
    fields_of_finding = found["properties"]["findings"]["items"]["properties"]
    for name, values in _NAMED.items():
        fields_of_finding[name]["enum"] = list(values)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def reference() -> str:
    """Return the page."""
    lines = [
        "# Fields of the JSON files",
        "",
        "From the JSON Schemas in [`cluster_run/schemas/`](../cluster_run/schemas) by `make gold`; tests",
        "hold both against what is written. Fields may be added; readers ignore what they do not know.",
    ]
    for name in NAMES:
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
    FINDINGS.write_text(findings_schema(), encoding="utf-8")
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE)
