"""One way in: whatever form an inventory has, and whatever the command line adds to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster_collect.inventory.build import Inventory, build_inventory
from cluster_collect.inventory.forms import FORMS, InventoryFile
from cluster_collect.inventory.hostlist import COMMAND_LINE, read_hosts
from cluster_collect.inventory.keys import Draft, Entry, check_entry
from cluster_collect.inventory.located import Located, not_utf8
from cluster_run.errors import InputError, UsageError
from cluster_run.ranktable import read_rank_table

#: An inventory of 65 536 hosts with every key takes less.
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class InventoryRequest:
    """What the command line says about hosts.

    `rank_table` replaces the inventory's. Where neither file nor `hosts` names a host, its hosts are taken.
    `defaults` are keys of a host as text; they stand above the inventory's `defaults` and below
    what a host says itself. Without a file, paths are relative to `directory`.
    """

    file: Path | None = None
    hosts: str | None = None
    rank_table: Path | None = None
    defaults: Mapping[str, str | int] = field(default_factory=dict)
    directory: Path = Path()


def load_inventory(request: InventoryRequest, environment: Mapping[str, str]) -> Inventory:
    """Read the inventory that a command line asks for.

    With `hosts` and a file, the file gives the defaults and groups, the command line the hosts.

    Raises:
        UsageError: the inventory cannot be meant; with file, line and key.
        InputError: a file or a password's variable is missing, or passwords are open to others.
    """
    if request.file is None and request.hosts is None and request.rank_table is None:
        raise UsageError("no hosts", "give --inventory FILE or --hosts NODESET")
    name = str(request.file or (COMMAND_LINE if request.hosts is not None else request.rank_table))
    base = request.file.parent if request.file else request.directory
    draft = read_draft(request.file) if request.file else Draft((), Entry(Located(None, name, 0)))
    if request.hosts is not None:
        draft = replace(draft, entries=read_hosts(request.hosts), groups={})
    if request.rank_table is not None:
        draft = replace(draft, rank_table=str(request.rank_table.absolute()))
    if not draft.entries and draft.rank_table is not None:
        draft = replace(draft, entries=_hosts_of(base / Path(draft.rank_table).expanduser()))
    return build_inventory(_with_defaults(draft, request), name, base, environment)


def _hosts_of(rank_table: Path) -> tuple[Entry, ...]:
    """Return an entry for each host of a rank table, in the order of their ranks."""
    places = [Located(server_id, str(rank_table), 0) for server_id in read_rank_table(rank_table).server_ids]
    return tuple(Entry(place, {"address": place}) for place in places)


def read_draft(path: Path) -> Draft:
    """Read an inventory file of any form: see the documentation for all of them."""
    name = str(path)
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{name}: the inventory does not exist", "examples are in inventories/") from error
    except UnicodeDecodeError as error:
        raise not_utf8(name, error) from error
    except OSError as error:
        raise InputError(f"{name}: the inventory cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{name}: larger than {MAX_BYTES // 2**20} MiB; not an inventory")
    file = InventoryFile(path, text, status)
    return next(form for form in FORMS if form.fits(file)).read(file)


def _with_defaults(draft: Draft, request: InventoryRequest) -> Draft:
    where = Located(None, "--set", 0)
    values = {key: Located(value, "--set", 0) for key, value in request.defaults.items()}
    given = check_entry(where, values, "of a host")
    return replace(draft, defaults=Entry(draft.defaults.where, {**draft.defaults.values, **given.values}))
