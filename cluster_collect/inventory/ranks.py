"""Does the rank table speak of the hosts of the inventory?"""

from __future__ import annotations

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.nodesets import fold
from cluster_run.ranktable import RankTable


def compare_hosts(inventory: Inventory, table: RankTable, table_name: str) -> list[str]:
    """Return a warning for hosts that only one of the two knows; none when they agree.

    Call it with the whole inventory, before `limit`.
    """
    listed = {str(spec.server_id) for spec in inventory.specs}
    in_table = {str(server_id) for server_id in table.server_ids}
    warnings = []
    if absent := [one for one in table.server_ids if one not in listed]:
        ranks = sum(place.server_id in set(absent) for place in table.places)
        warnings.append(
            f"{table_name}: {fold(absent)} ({ranks} ranks) is no server_id of {inventory.name}; "
            f"these ranks will be missing. Add the host, or set its server_id to the name in the rank table"
        )
    if extra := [spec.server_id for spec in inventory.specs if spec.server_id not in in_table]:
        warnings.append(
            f"{inventory.name}: {fold(extra)} is not in {table_name}; "
            f"its data gets no ranks from it. Set server_id to the name in the rank table"
        )
    return warnings
