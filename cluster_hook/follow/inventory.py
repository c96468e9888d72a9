"""The inventory of one job: which of its hosts are read, and where. Written as JSON, which YAML contains."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from cluster_run.errors import InputError, UsageError, read_as
from cluster_run.host_names import is_address
from cluster_run.ids import ServerId
from cluster_run.ranktable import RankTable, parse_rank_table

#: Turns a node name into its addresses; empty where there are none.
Resolve = Callable[[str], tuple[str, ...]]

#: Keys of an inventory's `defaults`.
HostDefaults = Mapping[str, object]


def inventory_text(
    nodes: Sequence[str],
    server_ids: Sequence[str],
    profiler_root: str,
    rank_table: Path | None,
    defaults: HostDefaults,
) -> str:
    """Return the inventory that collects `profiler_root` of each node; `%N` in it is the node's name."""
    document: dict[str, object] = {"version": 1}
    if rank_table:
        document["rank_table"] = str(rank_table)
    if defaults:
        document["defaults"] = dict(defaults)
    document["hosts"] = [
        {"address": node, "profiler_root": profiler_root.replace("%N", node), "server_id": server_id}
        for node, server_id in zip(nodes, server_ids, strict=True)
    ]
    return json.dumps(document, indent=1) + "\n"


def rank_table_of_job(path: Path) -> RankTable:
    """Read a rank table.

    Raises:
        InputError: it cannot be read.
        UsageError: it is none, and will not become one.
    """
    with read_as(f"{path}: the rank table cannot be read"):
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return parse_rank_table(text, str(path))
    except InputError as error:
        raise UsageError(*error.args) from error


def server_ids_of(nodes: Sequence[str], table: RankTable | None, resolve: Resolve) -> tuple[ServerId, ...]:
    """Return the name that the rank table has for each node: its own, a longer or shorter form of it, or
    one of its addresses; its own where the table has none of them.
    """
    known = set(table.server_ids) if table else set[str]()
    short = {name.partition(".")[0]: name for name in sorted(known) if not is_address(name)}
    return tuple(ServerId(_server_id(node, known, short, resolve)) for node in nodes)


def _server_id(node: str, known: Set[str], short: Mapping[str, str], resolve: Resolve) -> str:
    if not known or node in known:
        return node
    if node.partition(".")[0] in short:
        return short[node.partition(".")[0]]
    return next((address for address in resolve(node) if address in known), node)


def resolve_addresses(node: str) -> tuple[str, ...]:
    """Return all addresses of a node that the resolver knows; empty for an unknown name."""
    try:
        answers = socket.getaddrinfo(node, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))


def read_defaults(path: Path | None) -> HostDefaults:
    """Return the `defaults` of an inventory of the site: user, port, jump host and the like.

    Paths are absolute: inventories of jobs lie elsewhere.

    Raises:
        InputError: the file cannot be read, holds no `defaults`, or one that an inventory cannot have.
    """
    if path is None:
        return {}
    # Late: they bring yaml, and `--help` needs the standard library alone.
    from cluster_collect.inventory.keys import HOST_KEYS, check_entry  # noqa: PLC0415
    from cluster_collect.inventory.located import parse_yaml  # noqa: PLC0415

    with read_as(f"{path}: the host defaults cannot be read"):
        inventory = parse_yaml(path.read_text(), str(path)).mapping("the inventory")
    if "defaults" not in inventory:
        raise InputError(f"{path}: no `defaults` in it", "write them as in an inventory")
    defaults = inventory["defaults"]
    checked = check_entry(defaults, defaults.mapping("'defaults'"), "in defaults")
    beside = path.absolute().parent
    return {
        key: str(beside / one.text(key))
        if HOST_KEYS[key].kind == "path" and not one.text(key).startswith("~")
        else one.value
        for key, one in checked.values.items()
    }
