"""Dask as the hook starts it: its settings reach Dask, and only who has the certificates gets in."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_hook.follow import dask_allocation
from cluster_hook.follow.dask_allocation import AllocationError, dask_in_allocation
from tests.commands import ran

_NAMES = ("scheduler.worker-ttl", "scheduler.allowed-failures", "comm.require-encryption")


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
def encrypted_cluster(directory: Path) -> Iterator[str]:
    """Run a scheduler and a worker on loopback, as an administrator would; yields the address."""
    dask_allocation._write_certificates(directory)
    tls = dask_allocation._tls_arguments(directory)
    file = directory / "scheduler.json"
    common = [*tls, "--host=127.0.0.1", f"--scheduler-file={file}", "--no-dashboard"]
    scheduler = [sys.executable, "-m", "dask", "scheduler", "--protocol=tls", "--port=0", *common]
    worker = [
        sys.executable,
        "-m",
        "dask",
        "worker",
        "--nthreads=1",
        f"--local-directory={directory}",
        *common,
    ]
    with (directory / "log").open("w") as log:
        processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in (scheduler, worker)]
        try:
            end_s = time.monotonic() + 120
            while not (address := dask_allocation._address(file)):
                assert time.monotonic() < end_s, (directory / "log").read_text()
                time.sleep(0.1)
            yield address
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(20)


def is_turned_away(address: str) -> bool:
    """Return whether the scheduler ends a connection of somebody without a certificate."""
    host, _, port = address.removeprefix("tls://").rpartition(":")
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname = False
    anonymous.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        try:
            with anonymous.wrap_socket(connection) as encrypted:
                return encrypted.recv(1) == b""
        except (ssl.SSLError, ConnectionError):
            return True


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_certificates_of_dasks_own_configuration_open_a_tls_cluster_and_nothing_else_does(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    job = ("--tp", "1", "--pp", "1", "--dp", "2", "--steps", "2", "-q")
    subprocess.run([sys.executable, "-m", "cluster_simulate", run, *job], check=True, timeout=120)
    directory = tmp_path / "dask"
    directory.mkdir()
    certificates = {
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(directory / "ca.pem"),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": str(directory / "cert.pem"),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": str(directory / "key.pem"),
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
    }
    with encrypted_cluster(directory) as address:
        analyse = [
            sys.executable,
            "-m",
            "cluster_analysis",
            str(run),
            f"--scheduler={address}",
            "--no-report",
            "-q",
        ]
        known = ran(analyse, env={**os.environ, **certificates})
        assert is_turned_away(address)
    assert known.returncode == 0, known.stderr
    assert json.loads((run / "cluster_analysis_output" / "findings.json").read_text())["run"]["ranks"] == 2
