"""On which host each rank ran: by the folder of its data, unless something contradicts it.

Hosts that see one file system are read once, so the folder is that of whichever answered first. A folder that
holds ranks of another host by the rank table is of another run, or of a file system that was shared unknown
to us. A rank without a host is a gap; a rank with a wrong one has the wrong machine taken out of service.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cluster_analysis.discovery.found import Found
from cluster_analysis.discovery.places import Places
from cluster_run.facts import fact
from cluster_run.ids import DeviceId, HostId, Rank, ServerId
from cluster_run.layout import RANK_TABLE_NAME
from cluster_run.problem import Problem


class Hosts(Struct, frozen=True):
    """Host of each rank, where it is known; the hosts' real names; what the rank table says of devices."""

    of_rank: Mapping[Rank, HostId]
    addresses: Mapping[HostId, str]
    devices: Mapping[Rank, DeviceId]
    problems: tuple[Problem, ...] = ()
    is_placed: bool = True


def hosts_of(captures: Mapping[Rank, Found], places: Places) -> Hosts:
    """Return the host of each rank; none if neither folders nor a table show it: see `topology.hosts`."""
    of_rank, addresses = dict(places.hosts), dict(places.addresses)
    if not of_rank and all(one.host is None for one in captures.values()):
        return Hosts({}, {}, places.devices, is_placed=False)
    server_of = {place.rank: place.server_id for place in (places.table.places if places.table else ())}
    elsewhere: list[Rank] = []
    unknown: list[Rank] = []
    for rank, one in sorted(captures.items()):
        if one.host is None:
            continue
        if one.host in places.shared:
            host = places.hosts.get(rank) or _named(one, addresses)
            unknown += [] if host else [rank]
        elif _differs(server_of.get(rank), one.host, places):
            host = None
            elsewhere.append(rank)
        else:
            host = one.host
        of_rank.pop(rank, None)
        if host is not None:
            of_rank[rank] = host
    problems = []
    if elsewhere:
        problems.append(Problem(fact("other_hosts_than_table", ranks=tuple(elsewhere)), file=RANK_TABLE_NAME))
    if unknown:
        problems.append(Problem(fact("hosts_share_files", ranks=tuple(unknown))))
    devices = {} if elsewhere else places.devices
    return Hosts(dict(sorted(of_rank.items())), addresses, devices, tuple(problems))


def _differs(server: ServerId | None, host: HostId, places: Places) -> bool:
    """Whether `server` is another one than `host`, by a rank table that knows both."""
    name = places.addresses.get(host)
    known = places.table.server_ids if places.table else ()
    return server is not None and name in known and server != name


def _named(found: Found, addresses: Mapping[HostId, str]) -> HostId | None:
    """Return the host whose real name the capture's own name begins with."""
    named = [host for host, name in addresses.items() if found.host_name in (name, name.partition(".")[0])]
    return named[0] if len(named) == 1 else None
