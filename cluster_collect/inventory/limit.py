"""`--limit`: a part of the hosts. Their numbers stay those of the whole inventory."""

from __future__ import annotations

import difflib
from dataclasses import replace

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.nodesets import select
from cluster_run.errors import UsageError


def limit(inventory: Inventory, text: str) -> Inventory:
    """Return the inventory with only the hosts that `text` names, by address, server id or `@group`.

    Raises:
        UsageError: not a node set, an unknown host or group, or no host left.
    """
    names = {name: spec for spec in inventory.specs for name in (spec.server_id, spec.address) if name}
    chosen = select(text, [spec.server_id for spec in inventory.specs], inventory.groups)
    unknown = sorted(chosen - set(names))
    if unknown:
        near = difflib.get_close_matches(unknown[0], names, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "name hosts by address, server id or @group"
        raise UsageError(f"--limit: {unknown[0]!r} is no host of {inventory.name}", advice)
    specs = tuple(spec for spec in inventory.specs if {spec.server_id, spec.address} & chosen)
    if not specs:
        raise UsageError(f"--limit {text!r} leaves no host of {inventory.name}")
    return replace(inventory, specs=specs)
