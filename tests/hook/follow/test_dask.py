"""Dask as the hook starts it: its settings reach Dask, and only who has the certificates gets in."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_hook.follow import dask_allocation
from cluster_hook.follow.dask_allocation import AllocationError, dask_in_allocation
from tests.commands import HANGS_S, ran, wait_until

_NAMES = ("scheduler.worker-ttl", "scheduler.allowed-failures", "comm.require-encryption")


@pytest.mark.slow
def test_the_settings_have_the_names_that_dask_reads() -> None:
    code = f"import dask, distributed; print([dask.config.get('distributed.' + one) for one in {_NAMES!r}])"
    environment = {**os.environ, **dask_allocation._SETTINGS}
    ended = ran([sys.executable, "-c", code], env=environment, check=True)
    assert ended.stdout.strip() == "['30s', 2, True]"


def test_outside_of_a_job_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(AllocationError, match="no Slurm job"), dask_in_allocation(tmp_path, ""):
        raise AssertionError("it was started")
    assert list(tmp_path.iterdir()) == []


def test_the_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    dask_allocation._write_certificates(tmp_path)
    assert {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {
        "ca.pem": 0,
        "cert.pem": 0,
        "key.pem": 0,
    }


@contextmanager
def encrypted_scheduler(directory: Path) -> Iterator[str]:
    """Run a scheduler on loopback with the keys and options that the hook gives it; yields its address."""
    dask_allocation._write_certificates(directory)
    file = directory / "scheduler.json"
    command = [sys.executable, "-m", "dask", "scheduler", "--protocol=tls", "--port=0", "--host=127.0.0.1"]
    command += [*dask_allocation._tls_arguments(directory), f"--scheduler-file={file}", "--no-dashboard"]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield wait_until(lambda: dask_allocation._address(file), otherwise=(directory / "log").read_text)
        finally:
            process.terminate()
            process.wait(60)


def is_let_in(address: str, keys: Path | None) -> bool:
    """Return whether the scheduler speaks with somebody who has these keys, or none."""
    host, _, port = address.removeprefix("tls://").rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if keys is not None:
        context.load_cert_chain(keys / "cert.pem", keys / "key.pem")
    with socket.create_connection((host, int(port)), timeout=HANGS_S) as connection:
        try:
            with context.wrap_socket(connection) as encrypted:
                return encrypted.recv(1) != b""
        except (ssl.SSLError, ConnectionError):
            return False


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_scheduler_speaks_with_who_has_the_keys_and_with_nobody_else(tmp_path: Path) -> None:
    with encrypted_scheduler(tmp_path) as address:
        assert is_let_in(address, tmp_path)
        assert not is_let_in(address, None)
