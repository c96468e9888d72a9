"""Rank tables (hccl.json) and the host mapping: which rank runs on which device of which host.

Three forms of rank table are read: version 1.0 and 1.2 (`server_list[].device[]`) and the older
`group_list[].instance_list[].devices[]`. Numbers may be written as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster_run.errors import InputError
from cluster_run.ids import DeviceId, HostId, Rank, ServerId


@dataclass(frozen=True)
class RankPlace:
    """Where one rank runs. `super_pod` is empty where the table knows none."""

    rank: Rank
    server_id: ServerId
    device: DeviceId
    super_pod: str = ""


@dataclass(frozen=True)
class RankTable:
    """All places of a job, ordered by rank."""

    places: tuple[RankPlace, ...]

    @cached_property
    def server_ids(self) -> tuple[ServerId, ...]:
        """The hosts in order of their first rank."""
        return tuple(dict.fromkeys(place.server_id for place in self.places))


def read_rank_table(path: Path) -> RankTable:
    """Read a rank table.

    Raises:
        InputError: it cannot be read, or is not a complete rank table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the rank table cannot be read: {error}") from error
    return parse_rank_table(text, str(path))


def parse_rank_table(text: str, name: str) -> RankTable:
    """Parse the text of a rank table; `name` is the file's name for messages.

    Raises:
        InputError: not a rank table of a known form, not completed, or a rank or device twice.
    """
    try:
        document = json.loads(text.removeprefix("\ufeff"))
        if not isinstance(document, dict):
            raise InputError(f"{name}: not a rank table: the top level is not an object")
        if document.get("status", "completed") != "completed":
            raise InputError(
                f"{name}: the rank table has status {document['status']!r}",
                "it was taken before the job had all its devices; take it again",
            )
        places = _places(document, name)
    except RecursionError as error:
        raise InputError(f"{name}: not a readable rank table: nested too deeply") from error
    except KeyError as error:
        raise InputError(f"{name}: not a readable rank table: {error} is missing in an entry") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{name}: not a readable rank table: {error}") from error
    if not places:
        raise InputError(
            f"{name}: the rank table has no ranks", "it was taken before the job had its devices?"
        )
    _refuse_duplicates(places, name)
    return RankTable(tuple(sorted(places, key=lambda place: place.rank)))


def _places(document: dict[str, Any], name: str) -> list[RankPlace]:
    if "server_list" in document:
        return _places_of_servers(document)
    if "group_list" in document:
        return _places_of_groups(document)
    raise InputError(f"{name}: not a rank table: neither server_list nor group_list is in it")


def _places_of_servers(document: dict[str, Any]) -> list[RankPlace]:
    pods = {
        server["server_id"]: _text(pod["super_pod_id"])
        for pod in document.get("super_pod_list") or []
        for server in pod["server_list"]
    }
    return [
        RankPlace(
            Rank(_number(device["rank_id"])),
            ServerId(_text(server["server_id"])),
            DeviceId(_number(device["device_id"])),
            pods.get(server["server_id"], ""),
        )
        for server in document["server_list"]
        for device in server["device"]
    ]


def _places_of_groups(document: dict[str, Any]) -> list[RankPlace]:
    """Read the older form. An instance is one rank, or (without rank_id) a pod with a rank a device."""
    places: list[RankPlace] = []
    for group in document["group_list"]:
        for instance in group["instance_list"]:
            server_id = ServerId(_text(instance.get("server_id") or instance["pod_name"]))
            for device in instance["devices"]:
                rank = _number(instance["rank_id"]) if "rank_id" in instance else len(places)
                places.append(RankPlace(Rank(rank), server_id, DeviceId(_number(device["device_id"]))))
    return places


def _number(value: object) -> int:
    """Return a rank or device number; JSON's `1.5`, `true` and `-1` are none."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or int(value) < 0:
        raise ValueError(f"{value!r} is not a rank or device number")
    return int(value)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise ValueError(f"{value!r} is not a name")
    return str(value)


def _refuse_duplicates(places: list[RankPlace], name: str) -> None:
    for what, keys in (
        ("rank", [(place.rank,) for place in places]),
        ("device", [(place.server_id, place.device) for place in places]),
    ):
        seen: set[tuple[object, ...]] = set()
        for key in keys:
            if key in seen:
                raise InputError(f"{name}: {what} {'/'.join(map(str, key))} appears twice")
            seen.add(key)


def parse_host_mapping(text: str) -> dict[ServerId, HostId]:
    """Parse host_ips_mapping.txt; the first line of a host wins, blank and short lines are passed over."""
    mapping: dict[ServerId, HostId] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 2:
            mapping.setdefault(ServerId(fields[0]), HostId(fields[1]))
    return mapping


def format_host_mapping(mapping: Mapping[ServerId, HostId]) -> str:
    """Return the text of host_ips_mapping.txt, one `<server_id> <N>` a line."""
    return "".join(f"{server_id} {host}\n" for server_id, host in mapping.items())
