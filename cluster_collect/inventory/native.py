"""The project's own inventory: `version`, `rank_table`, `output`, `defaults`, `groups`, `hosts`."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_collect.inventory.keys import HOST_KEYS, Draft, Entry, check_entry
from cluster_collect.inventory.located import Located, unknown_key

VERSION = 1

#: The keys at the top of an inventory. docs/collecting.md says what they mean.
TOP_KEYS = ("version", "rank_table", "output", "defaults", "groups", "hosts")


def read_native(document: Located) -> Draft:
    """Read an inventory of this project.

    Raises:
        InputError: an unknown key, a wrong type or another version; with file, line and key.
    """
    top = document.mapping("the inventory")
    for name, value in top.items():
        if name not in TOP_KEYS:
            raise _unknown_top_key(value, name)
    if "version" not in top:
        raise document.wrong("key 'version' is missing", f"begin the inventory with 'version: {VERSION}'")
    if (found := top["version"].number("'version'", f"write it like {VERSION}")) != VERSION:
        raise top["version"].wrong(f"version {found} found, {VERSION} wanted", "a newer program wrote this?")
    return Draft(
        entries=_entries(top["hosts"]) if "hosts" in top else (),
        defaults=_defaults(top["defaults"]) if "defaults" in top else Entry(document),
        groups=_groups(top["groups"]) if "groups" in top else {},
        rank_table=_path(top, "rank_table", "hccl.json"),
        output=_path(top, "output", "run1"),
    )


def _path(top: Mapping[str, Located], name: str, like: str) -> str | None:
    return top[name].text(repr(name), f"write it like {like}") if name in top else None


def _entries(hosts: Located) -> tuple[Entry, ...]:
    return tuple(_entry(host) for host in hosts.items("'hosts'"))


def _entry(where: Located) -> Entry:
    if isinstance(where.value, str):  # "- node01": the short form of "- address: node01"
        return Entry(where, {"address": where})
    return check_entry(where, where.mapping("a host"), "of a host")


def _defaults(where: Located) -> Entry:
    return check_entry(where, {} if where.value is None else where.mapping("'defaults'"), "in defaults")


def _groups(groups: Located) -> Mapping[str, Located]:
    members = groups.mapping("'groups'")
    for name, member in members.items():
        member.text(f"group {name!r}", "write it like node[01-04,07]")
    return members


def _unknown_top_key(value: Located, name: str) -> Exception:
    if name in HOST_KEYS:
        return value.wrong(
            f"unknown key {name!r} of the inventory", f"{name!r} belongs below defaults or a host"
        )
    return unknown_key(value, name, TOP_KEYS, "of the inventory")
