"""Loads an inventory of any form, with what the command line and the rank table add to it or take from it."""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from cluster_collect.inventory.build import Inventory, build_inventory, by_names
from cluster_collect.inventory.forms import FORMS, InventoryFile
from cluster_collect.inventory.hostlist import COMMAND_LINE, read_hosts
from cluster_collect.inventory.keys import Draft, Entry, check_entry
from cluster_collect.inventory.located import Located, not_utf8, unquoted
from cluster_collect.inventory.nodesets import expand, fold, select
from cluster_collect.wording import count
from cluster_run.errors import InputError, UsageError
from cluster_run.ranktable import RankTable, read_rank_table

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
        named = read_hosts(request.hosts)
        warnings = (*draft.warnings, *_passed_over(draft.entries, named, name))
        draft = replace(draft, entries=named, groups={}, warnings=warnings)
    if request.rank_table is not None:
        draft = replace(draft, rank_table=str(request.rank_table.absolute()))
    if not draft.entries and draft.rank_table is not None:
        draft = replace(draft, entries=_hosts_of(base / Path(draft.rank_table).expanduser()))
    return build_inventory(_with_defaults(draft, request), name, base, environment)


def _passed_over(listed: Iterable[Entry], named: Iterable[Entry], file: str) -> Iterator[str]:
    """Warn of hosts that both name, where what the file says of them alone is lost."""
    more = (entry for entry in listed if set(entry.values) > {"address"})
    if both := _addresses(more) & _addresses(named):
        yield (
            f"{file}: {fold(sorted(both))} stands there with more than its address; "
            "--hosts passes it over, --limit takes it as it stands"
        )


def _addresses(entries: Iterable[Entry]) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        with suppress(UsageError):  # what is no node set is said by whoever reads it
            found.update(expand(entry.text("address") or ""))
    return found


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
    values = {key: Located(unquoted(str(value)), "--set", 0) for key, value in request.defaults.items()}
    given = check_entry(where, values, "of a host")
    return replace(draft, defaults=Entry(draft.defaults.where, {**draft.defaults.values, **given.values}))


def limit(inventory: Inventory, text: str) -> Inventory:
    """Return the inventory with only the hosts that `text` names, by address, server id or `@group`.

    Raises:
        UsageError: not a node set, an unknown host or group, or no host left.
    """
    by_name = by_names(inventory.specs, inventory.aliases)

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
