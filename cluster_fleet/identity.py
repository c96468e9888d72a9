"""Identifies devices and hosts across runs, by keys that outlast addresses, ranks and jobs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import Struct
from msgspec.json import decode

from cluster_run.errors import InputError, spoken
from cluster_run.ids import HostId
from cluster_run.layout import MANIFEST_NAME, MAPPING_NAME
from cluster_run.manifest import Chip, Hardware
from cluster_run.ranktable import parse_host_mapping

_HASH = re.compile(r"host-[0-9a-f]{8}")


@dataclass(frozen=True)
class Known:
    """A device or a host as the fleet knows it.

    `key` stays the same as long as the unit does; `place` is where it sits, and its replacement sits there,
    too. `physical` is the number that its driver has for a device; None where unknown.
    """

    key: str
    name: str
    place: str
    host_key: str = ""
    physical: int | None = None


@dataclass(frozen=True)
class RunHosts:
    """The hosts of a run, and what is known of their chips."""

    hosts: Mapping[HostId, Known]
    hardware: Mapping[HostId, Hardware] = field(default_factory=dict)

    def device(self, host: HostId, number: int) -> Known:
        """Return the device of that number: by VDie, else serial and chip, else host and PCIe place."""
        of_host = self.hosts[host]
        hardware = self.hardware.get(host)
        chips = () if hardware is None else hardware.chips
        chip = next((one for one in chips if one.device == number), Chip(number))
        place = f"{of_host.key}/{chip.pcie or f'device-{number}'}"
        key = f"place:{place}"
        if chip.vdie:
            key = f"vdie:{chip.vdie.replace(' ', '').upper()}"
        elif _says(chip.serial):
            key = f"serial:{chip.serial}/{chip.chip}"
        return Known(key, f"device {number} of {of_host.name}", place, of_host.key, chip.physical)


def hosts_of_run(run: Path, *, show_addresses: bool = False) -> RunHosts:
    """Return who the hosts of a run are.

    A name that a host gave itself is shown; one of the rank table is often an address, and is a hash of it
    unless `show_addresses`.

    Raises:
        InputError: the hosts are unknown.
    """
    mapping, manifest = run / MAPPING_NAME, run / MANIFEST_NAME
    hardware_by_host = _hardware(manifest) if manifest.exists() else {}
    serials = {one.serial: host for host, one in hardware_by_host.items() if _says(one.serial)}
    try:
        # Hosts whose serial number is known are known without a mapping.
        numbers = (
            parse_host_mapping(mapping.read_text(encoding="utf-8"))
            if mapping.exists() or not serials
            else serials
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{mapping}: cannot be read: {spoken(error)}",
            "it has one line for each host: `ADDRESS 1`, `ADDRESS 2`, in the order of the inventory; "
            "cluster-collect writes it, and the hooks where a job names its rank table",
        ) from error
    hosts = {}
    for server_id, host in numbers.items():
        hardware = hardware_by_host.get(host, Hardware())
        hashed = hashlib.sha256(server_id.encode()).hexdigest()[:12]
        key = f"host-serial:{hardware.serial}" if _says(hardware.serial) else f"host:{hashed}"
        name = hardware.name or (server_id if show_addresses else f"host-{hashed[:8]}")
        hosts[host] = Known(key, name, key)
    return RunHosts(hosts, hardware_by_host)


def is_hash(name: str) -> bool:
    """Whether a host is called by a hash of its address, because its name is not known."""
    return _HASH.fullmatch(name) is not None


def with_names(units: Sequence[Known], names: Mapping[str, str]) -> list[Known]:
    """Return units with the names, by key, of those hosts that they call by hashes; so for their devices."""
    hashed = {one.key: one.name for one in units if not one.host_key and is_hash(one.name)}

    def renamed(unit: Known) -> Known:
        host = unit.host_key or unit.key
        if host not in hashed or host not in names:
            return unit
        return replace(unit, name=unit.name.removesuffix(hashed[host]) + names[host])

    return [renamed(one) for one in units]


class _Host(Struct):
    """What is read of a host in a manifest: not its files, which are many, nor fields of a later version."""

    host: HostId
    hardware: Hardware = field(default_factory=Hardware)


class _Manifest(Struct):
    hosts: list[_Host]


def _hardware(manifest: Path) -> dict[HostId, Hardware]:
    """Return what the hosts of a manifest say of themselves."""
    try:
        return {one.host: one.hardware for one in decode(manifest.read_bytes(), type=_Manifest).hosts}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{manifest}: not a readable manifest: {spoken(error)}") from error


def _says(serial: str) -> bool:
    return serial.strip().lower() not in (
        "",
        "na",
        "n/a",
        "none",
        "not specified",
        "to be filled by o.e.m.",
        "0",
    )
