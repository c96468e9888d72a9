"""Rank tables (hccl.json) and the host mapping: which rank runs on which device of which host.

Forms that are read, with numbers as text or not: versions 1.0 and 1.2 (`server_list[].device[]`, or the same
within `super_pod_list[]`), the older `group_list[].instance_list[].devices[]`, version 2.0 of A5
(`rank_list[]`, which names no host), and those of services with several jobs, each of which counts its ranks
from 0: `server_group_list[].server_list[].device[]`, `prefill_device_list[]` and `decode_device_list[]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster_run.errors import InputError, spoken
from cluster_run.files import json_of
from cluster_run.ids import DeviceId, HostId, Rank, ServerId

#: Keys of which a rank table has one at its top level.
MARKS = (
    "server_list",
    "group_list",
    "server_group_list",
    "prefill_device_list",
    "decode_device_list",
    "rank_list",
    "super_pod_list",
)
_ROLES = ("prefill_device_list", "decode_device_list")
#: How an entry names its server, the first that it has.
_SERVERS = ("server_id", "server_ip", "host_ip", "container_ip")


@dataclass(frozen=True)
class RankPlace:
    """Where one rank runs. What the table lacks is empty: the server (2.0), the address.

    `address` is the server's other name: that of its container, or its address where it has a name.
    """

    rank: Rank
    server_id: ServerId
    device: DeviceId
    address: str = ""


@dataclass(frozen=True)
class RankTable:
    """All places of a job, ordered by rank.

    Where a table holds several jobs `places` is empty, as a rank is in several, and `jobs` has those of each.
    """

    places: tuple[RankPlace, ...]
    jobs: tuple[tuple[RankPlace, ...], ...] = ()

    @cached_property
    def all_places(self) -> tuple[RankPlace, ...]:
        """The places of all jobs."""
        return self.places or tuple(place for job in self.jobs for place in job)

    @cached_property
    def server_ids(self) -> tuple[ServerId, ...]:
        """The hosts in order of their first rank."""
        return tuple(dict.fromkeys(place.server_id for place in self.all_places if place.server_id))


def read_rank_table(path: Path) -> RankTable:
    """Read a rank table.

    Raises:
        InputError: it cannot be read, or is not a complete rank table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: the rank table cannot be read: {spoken(error)}",
            "name the job's rank table, or leave it out",
        ) from error
    return parse_rank_table(text, str(path))


def parse_rank_table(text: str, name: str) -> RankTable:
    """Parse the text of a rank table; `name` is the file's name for messages.

    Raises:
        InputError: not a rank table of a known form, not completed, or a rank or device twice.
    """
    try:
        document = json_of(text.removeprefix("\ufeff"))
        if not isinstance(document, dict):
            raise InputError(f"{name}: not a rank table: the top level is not an object")
        if document.get("status", "completed") != "completed":
            raise InputError(
                f"{name}: the rank table has status {document['status']!r}",
                "it was taken before the job had all its devices; take it again",
            )
        jobs = [places for places in _jobs(document, name) if places]
    except KeyError as error:
        raise InputError(f"{name}: not a readable rank table: {error} is missing in an entry") from error
    except ValueError as error:
        raise InputError(f"{name}: not a readable rank table: {error}") from error
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"{name}: not a readable rank table: a list of objects is something else",
            "compare it with a rank table that the platform wrote",
        ) from error
    if not jobs:
        raise InputError(
            f"{name}: the rank table has no ranks", "it was taken before the job had its devices?"
        )
    for places in jobs:
        _refuse_duplicates(places, name)
    ordered = [tuple(sorted(places, key=lambda place: place.rank)) for places in jobs]
    return RankTable(ordered[0]) if len(ordered) == 1 else RankTable((), tuple(ordered))


def _jobs(document: dict[str, Any], name: str) -> list[list[RankPlace]]:
    """Return the places of each job that the table holds."""
    if "server_list" in document:
        return [_places_of_servers(document["server_list"])]
    if "group_list" in document:
        return [_places_of_groups(document)]
    if "server_group_list" in document:
        groups = [group.get("server_list") or [] for group in document["server_group_list"]]
        # Groups of coordinators and controllers have servers without devices.
        return [_places_of_servers([one for one in group if one.get("device")]) for group in groups]
    if "prefill_device_list" in document or "decode_device_list" in document:
        return [_places_of_devices(document.get(role) or []) for role in _ROLES]
    if "rank_list" in document:
        return [_places_of_devices(document["rank_list"])]
    if pods := document.get("super_pod_list"):
        return [_places_of_servers([server for pod in pods for server in pod["server_list"]])]
    raise InputError(f"{name}: not a rank table: it has none of {', '.join(MARKS)}")


def _places_of_servers(servers: list[dict[str, Any]]) -> list[RankPlace]:
    return [
        RankPlace(
            Rank(_number(device["rank_id"])),
            _server(server),
            DeviceId(_number(device["device_id"])),
            _address(server),
        )
        for server in servers
        for device in server["device"]
    ]


def _places_of_devices(devices: list[dict[str, Any]]) -> list[RankPlace]:
    """Read a list with a device an entry; without `rank_id` they are in the order of their ranks."""
    return [
        RankPlace(
            Rank(_number(device.get("rank_id", at))),
            _server(device) if any(name in device for name in _SERVERS) else ServerId(""),
            DeviceId(_number(device["device_id"])),
            _address(device) if any(name in device for name in _SERVERS) else "",
        )
        for at, device in enumerate(devices)
    ]


def _server(entry: dict[str, Any]) -> ServerId:
    """Return the name of a server: its id, else its address, else that of its container."""
    name = next((name for name in _SERVERS if name in entry), _SERVERS[0])
    return ServerId(_text(entry[name]))


def _address(entry: dict[str, Any]) -> str:
    """Return another name of a server, empty where it has one only."""
    others = (entry.get(name) for name in reversed(_SERVERS))
    return next((str(one) for one in others if one and str(one) != _server(entry)), "")


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
        ("device", [(place.server_id, place.device) for place in places if place.server_id]),
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
