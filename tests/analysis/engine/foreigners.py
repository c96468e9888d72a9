"""Another user of this machine, who tries to get into a Dask cluster; and where its processes listen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping

import psutil
import pytest

from tests.commands import ran

_DEADLINE_S = 300
#: Becomes "nobody", connects in each way that needs no key of the run, then with the key, and asks the
#: scheduler to run code. The interpreter may lie where only root may read: all is imported before.
_INTRUDER = """
import json, os, sys
from distributed import Client
from distributed.security import Security

address, key = sys.argv[1], json.load(sys.stdin)
another, ours = Security.temporary(), Security(**key, require_encryption=True)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for name, where, security in (
    ("open", address.replace("tls://", "tcp://"), None),
    ("no certificate", address, None),
    ("another certificate", address, another),
    ("the key of the run", address, ours),
):
    try:
        client = Client(where, security=security, timeout=5)
        client.run_on_scheduler(os.getpid)
        print(name, "ran code")
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError):
        print(name, "refused")
os._exit(0)
"""
#: What must become of it: the last shows that the others were not refused for another reason.
REFUSED = [
    "open refused",
    "no certificate refused",
    "another certificate refused",
    "the key of the run ran code",
]


def as_other_user(address: str, key: Mapping[str, str]) -> list[str]:
    """Return what became of each of another user's attempts to connect; skip where there is no other user.

    Args:
        address: the scheduler's.
        key: `tls_ca_file`, `tls_client_cert` and `tls_client_key` of the run, as text.
    """
    if os.getuid() != 0:
        pytest.skip("only root can act as a second user")
    argv = [sys.executable, "-c", _INTRUDER, address]
    done = ran(argv, input=json.dumps(dict(key)), timeout=_DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def listening(processes: Iterable[psutil.Process]) -> set[tuple[str, int]]:
    """Return the addresses and ports on which these processes wait for connections."""
    return {
        (one.laddr.ip, one.laddr.port)
        for process in processes
        for one in process.net_connections(kind="inet")
        if one.status == psutil.CONN_LISTEN
    }
