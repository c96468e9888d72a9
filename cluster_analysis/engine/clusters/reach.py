"""How a cluster on several hosts is reached, and when it gives up a worker. Needs no Dask: hooks ask, too.

A cluster listens at the address of this host that the others reach, and nowhere else.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

#: Settings of Dask's scheduler where workers run on Slurm's nodes, by their names in Dask's configuration. It
#: looks once in the time for which a worker may be silent, so a hung one costs up to twice as much: a minute,
#: not Dask's ten.
SCHEDULER: Mapping[str, str | int] = {
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.allowed-failures": 2,
}
#: How long a cluster may be without any worker before the analysis gives up.
NO_WORKERS_DEADLINE_S = 120.0
#: Hosts that are tried.
_MAX_HOSTS = 64
_SINFO_DEADLINE_S = 20.0
#: Nothing is sent: the kernel only chooses a route. The port does not matter.
_ANY_PORT = 9


def address_towards(hosts: Iterable[str]) -> str:
    """Return the own address by which most of these hosts are reached, loopback last; empty if none is known.

    Args:
        hosts: names or addresses.
    """
    own = Counter(address for host in list(hosts)[:_MAX_HOSTS] if (address := _own_address(host)))
    # A host that is this one may be reached by loopback, which proves nothing for the others.
    elsewhere = [one for one, _ in own.most_common() if not ipaddress.ip_address(one).is_loopback]
    return next(iter([*elsewhere, *own]), "")


def slurm_node_addresses(options: Sequence[str]) -> list[str]:
    """Return the addresses of Slurm's nodes; none where Slurm does not answer.

    Args:
        options: which, as options of sinfo: `--nodes=node[1-4]`, `--partition=debug`, or none for all.
    """
    try:
        answer = subprocess.run(  # noqa: S603  no shell
            ["sinfo", "--noheader", "--Node", "--format=%o", *options],  # noqa: S607  wherever it is installed
            capture_output=True,
            text=True,
            timeout=_SINFO_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(dict.fromkeys(answer.stdout.split())) if answer.returncode == 0 else []


def _own_address(host: str) -> str:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return ""
