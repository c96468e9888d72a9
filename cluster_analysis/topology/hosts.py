"""Decides which rank ran on which host: the signs, and the order in which they are trusted.

1. The run directory and its rank table: the collector knows. Files that say that two of its hosts are one
   machine are believed, where no device would be there twice.
2. The host that each rank's database names.
3. The host in the names of captures, unless these are names of processes: each ends in its own rank, or there
   are as many names as ranks and no device number is there twice.
4. Device numbers that start again: ranks fill one host after the other.

A sign that puts one device on a host twice is wrong, and the next one is asked. Without any sign, hosts are
unknown: only ranks are judged.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping

from msgspec.structs import replace

from cluster_analysis.tables.model import Capture, RankMetadata
from cluster_run.facts import Fact, fact
from cluster_run.ids import DeviceId, HostId, Rank, host_number

_LAST_NUMBER = re.compile(r"(\d+)$")
#: Fewer ranks start again by chance: what is one device a host, or one process that sees one device?
_FEWEST_DEVICES = 2


def seated(capture: Capture, metadata: Mapping[Rank, RankMetadata]) -> Capture:
    """Return the capture with the hosts that its own files, and those of the run directory, tell together."""
    seat = _one_machine if capture.is_placed else _by_files
    return seat(capture, metadata, devices_of(capture, metadata))


def devices_of(capture: Capture, metadata: Mapping[Rank, RankMetadata]) -> dict[Rank, DeviceId]:
    """Return the devices that captures name: ranks need not lie on the devices of their own numbers."""
    named = {rank: one.device for rank, one in sorted(metadata.items()) if one.device is not None}
    return named | dict(capture.devices)


def _one_machine(
    capture: Capture, metadata: Mapping[Rank, RankMetadata], devices: Mapping[Rank, DeviceId]
) -> Capture:
    """Return it with the hosts of a run directory, two as one where their databases name the same machine."""
    machine_of = _machines(metadata)
    hosts_of: dict[Hashable, set[HostId]] = {}
    for rank, host in capture.hosts.items():
        hosts_of.setdefault(machine_of.get(rank, ("folder", host)), set()).add(host)
    first: dict[HostId, HostId] = {}
    for hosts in hosts_of.values():
        ordered = sorted(hosts, key=host_number)
        if len(ordered) < 2:
            continue
        ranks = [rank for rank, host in capture.hosts.items() if host in hosts]
        if _holds_once(dict.fromkeys(ranks, ordered[0]), devices):
            first |= dict.fromkeys(ordered[1:], ordered[0])
    of_rank = {rank: first.get(host, host) for rank, host in capture.hosts.items()}
    notes = tuple(fact("hosts_are_one", host=kept, other=other) for other, kept in sorted(first.items()))
    return replace(capture, hosts=of_rank, notes=capture.notes + notes)


def _by_files(
    capture: Capture, metadata: Mapping[Rank, RankMetadata], devices: Mapping[Rank, DeviceId]
) -> Capture:
    """Return it with hosts numbered by rank, by the first sign that does not contradict itself; else none."""
    ranks = sorted({*capture.names, *metadata})
    machine_of = _machines(metadata)
    by_name = {rank: name for rank, name in capture.names.items() if name}
    if ranks and machine_of.keys() >= set(ranks) and _holds_once(machine_of, devices):
        real = {rank: metadata[rank].host_name for rank in ranks}
        return _numbered(capture, machine_of, real)
    why = _why_not_names(by_name, ranks, devices)
    if why is None:
        return _numbered(capture, by_name, by_name)
    blocks = _blocks(ranks, devices)
    if blocks:
        return _numbered(capture, blocks, {}, fact("hosts_by_devices", n_hosts=len(set(blocks.values()))))
    unknown = [fact("hosts_unknown", why=why)] if len(ranks) > 1 and by_name else []
    return _numbered(capture, {}, {}, *unknown)


def _machines(metadata: Mapping[Rank, RankMetadata]) -> dict[Rank, Hashable]:
    return {rank: (one.host_uid, one.host_name) for rank, one in metadata.items() if one.host_name}


def _holds_once(host_of: Mapping[Rank, Hashable], devices: Mapping[Rank, DeviceId]) -> bool:
    """Return whether no host has one device twice."""
    places = [(host, devices[rank]) for rank, host in host_of.items() if rank in devices]
    return len(set(places)) == len(places)


def _why_not_names(
    by_name: Mapping[Rank, str], ranks: Iterable[Rank], devices: Mapping[Rank, DeviceId]
) -> str | None:
    """Return why the names in captures' names are not those of hosts, None where they may be."""
    if not by_name or by_name.keys() != set(ranks):
        return "no name"
    if not _holds_once(by_name, devices):
        return "one device twice"
    if len(by_name) == 1 or len(set(by_name.values())) < len(by_name):
        return None
    ends = {rank: _LAST_NUMBER.search(name) for rank, name in by_name.items()}
    ends_in_rank = all(end is not None and int(end.group(1)) == rank for rank, end in ends.items())
    known = [devices[rank] for rank in by_name if rank in devices]
    starts_again = len(set(known)) < len(known)
    return "names of processes" if ends_in_rank or (known and not starts_again) else None


def _blocks(ranks: Iterable[Rank], devices: Mapping[Rank, DeviceId]) -> dict[Rank, Hashable]:
    """Return the number of the host of each rank, counted by device numbers that start again.

    Empty where they do not, or not in the same way on all hosts.
    """
    blocks: list[dict[Rank, DeviceId]] = []
    last = None
    for rank in ranks:
        if rank not in devices:
            return {}
        if last is None or devices[rank] <= last:
            blocks.append({})
        last = blocks[-1][rank] = devices[rank]
    alike = {tuple(block.values()) for block in blocks}
    if len(blocks) < 2 or len(alike) > 1 or len(blocks[0]) < _FEWEST_DEVICES:
        return {}
    return {rank: number for number, block in enumerate(blocks) for rank in block}


def _numbered(
    capture: Capture, host_of: Mapping[Rank, Hashable], real: Mapping[Rank, str], *notes: Fact
) -> Capture:
    ordered = sorted(host_of)
    number_of = {
        host: HostId(str(number))
        for number, host in enumerate(dict.fromkeys(host_of[rank] for rank in ordered), 1)
    }
    of_rank = {rank: number_of[host_of[rank]] for rank in ordered}
    addresses = {of_rank[rank]: real[rank] for rank in ordered if real.get(rank)}
    return replace(capture, hosts=of_rank, addresses=addresses, notes=(*capture.notes, *notes))
