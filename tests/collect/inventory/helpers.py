"""Writes inventories and reads them the way the command does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.load import InventoryRequest, load_inventory


def load(
    directory: Path,
    text: str,
    *,
    name: str = "hosts.yaml",
    hosts: str | None = None,
    defaults: Mapping[str, str | int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Inventory:
    """Write `text` as an inventory into `directory` and load it."""
    path = directory / name
    path.write_text(text)
    path.chmod(0o600)
    request = InventoryRequest(path, hosts, defaults=defaults or {})
    return load_inventory(request, environment or {})


def native(hosts: str, defaults: str = "profiler_root: /prof") -> str:
    """Return an inventory of this project with the given `hosts` block."""
    lines = "\n".join("  " + line for line in hosts.strip("\n").splitlines())
    return f"version: 1\ndefaults: {{{defaults}}}\nhosts:\n{lines}\n"
