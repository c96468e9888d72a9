"""Compares the hosts of the rank table with those of the inventory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.nodesets import fold
from cluster_collect.wording import count
from cluster_run.ranktable import RankTable


def with_device_ranks(inventory: Inventory, table: RankTable) -> Inventory:
    """Return the inventory in which each host knows the ranks of its devices."""
    ranks: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for place in table.places:
        ranks[place.server_id][int(place.device)] = int(place.rank)
    specs = tuple(replace(spec, device_ranks=ranks.get(spec.server_id, {})) for spec in inventory.specs)
    return replace(inventory, specs=specs)


def compare_hosts(inventory: Inventory, table: RankTable, table_name: str) -> tuple[tuple[str, ...], str]:
    """Return warnings about hosts that only one of the two knows, and which ranks have none (empty: all do).

    Call it with the whole inventory, before `limit`.
    """
    listed = {str(spec.server_id) for spec in inventory.specs}
    in_table = {str(server_id) for server_id in table.server_ids}
    absent = [server_id for server_id in table.server_ids if server_id not in listed]
    extra = [spec.server_id for spec in inventory.specs if spec.server_id not in in_table]
    n_missing = sum(place.server_id not in listed for place in table.places)
    warnings = []
    missing = ""
    if absent:
        missing = (
            f"{fold(absent)} of {table_name} ({count(n_missing, 'rank')}) is no host of {inventory.name}"
        )
        warnings.append(
            f"{missing}: these ranks will be missing; add the host, or set its server_id to the name there"
        )
    if extra:
        warnings.append(
            f"{inventory.name}: {fold(extra)} is not in {table_name}: "
            f"the rank table says nothing about its ranks; set server_id to the name in the rank table"
        )
    return tuple(warnings), missing
