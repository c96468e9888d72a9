"""`--limit`: a part of the hosts. Their numbers stay those of the whole inventory."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.nodesets import select
from cluster_run.errors import UsageError


def limit(inventory: Inventory, text: str) -> Inventory:
    """Return the inventory with only the hosts that `text` names, by address, server id or `@group`.

    Raises:
        UsageError: not a node set, an unknown host or group, or no host left.
    """
    by_name: dict[str, list[str]] = {alias: [server_id] for alias, server_id in inventory.aliases.items()}
    for spec in inventory.specs:
        for name in {spec.server_id, spec.address} - {""}:
            by_name.setdefault(name, []).append(spec.server_id)

    def resolve(name: str) -> Iterable[str]:
        if name.startswith("@"):
            return _members(inventory, name[1:])
        matching = [name] if name in by_name else [one for one in by_name if fnmatchcase(one, name)]
        if not matching:
            near = difflib.get_close_matches(name, by_name, n=1, cutoff=0.5)
            advice = f"did you mean {near[0]!r}?" if near else "name hosts by address, server id or @group"
            raise UsageError(f"--limit: {name!r} is no host of {inventory.name}", advice)
        return [server_id for one in matching for server_id in by_name[one]]

    chosen = select(text, resolve)
    specs = tuple(spec for spec in inventory.specs if spec.server_id in chosen)
    if not specs:
        raise UsageError(f"--limit {text!r} leaves no host of {inventory.name}")
    return replace(inventory, specs=specs)


def _members(inventory: Inventory, group: str) -> Iterable[str]:
    if group not in inventory.groups:
        known = ", ".join(f"@{name}" for name in inventory.groups) or "none"
        raise UsageError(f"--limit: unknown group @{group}", f"groups of the inventory: {known}")
    return inventory.groups[group]
