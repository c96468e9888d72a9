"""A job is captured through msMonitor's daemon: the real profiler, and a stand-in made after its source."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import NotCapturedError
from tests.collect.live.hosts import HERE, Cluster, LiveHost
from tests.collect.live.test_file import LIVE, captured
from tests.commands import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
BY_DAEMON = {"PROF_CONFIG_PATH": "", "MSMONITOR_USE_DAEMON": "1"}


def start_daemon(cluster: Cluster, host: LiveHost, *certificates: str) -> LiveOptions:
    """Start the daemon of a host. Hosts share loopback, so each has a port of its own, which it chooses."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(host.directory)}
    command = [sys.executable, str(HERE / "daemon.py"), *certificates]
    cluster.processes.append(host.enter(command, environment, host.directory / "daemon.log"))
    wait_until((host.directory / "dynolog.sock").exists)
    wait_until((host.directory / "port").exists)
    return replace(LIVE, port=int((host.directory / "port").read_text()))


def wait_for_job(host: LiveHost) -> None:
    """Wait until the daemon has heard of the job: at its first poll, and at a step."""
    wait_until((host.directory / "knows").exists)


def make_certificates(directory: Path) -> Path:
    """Make ca.crt, and client and server certificates that it signs."""
    directory.mkdir()

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    request = "req -x509 -newkey rsa:3072 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2"
    openssl(*request.split())
    for name in ("client", "server"):
        openssl(*f"req -newkey rsa:3072 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}".split())
        signed = f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {name}.crt -days 2"
        openssl(*signed.split())
    return directory


def test_the_daemon_brings_the_same_steps_and_is_idle_afterwards(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add(1)
    live = start_daemon(cluster, cluster.hosts[0])
    cluster.job(environment=BY_DAEMON).start()
    wait_for_job(cluster.hosts[0])
    for number in range(2):
        result = captured(cluster, tmp_path / f"run{number}", live)
        assert result.captured.lost == {}
        assert result.captured.notes == ()
        assert len(list((tmp_path / f"run{number}").rglob("step_trace_time.csv"))) == 2


def test_a_text_that_the_daemon_would_drop_is_not_taken_for_sent(
    cluster: Cluster, host: LiveHost, tmp_path: Path
) -> None:
    live = start_daemon(cluster, host)
    cluster.job(environment=BY_DAEMON).start()
    wait_for_job(cluster.hosts[0])
    (host.directory / "drops").touch()  # the job polls, and a text of ours would wait
    with pytest.raises(NotCapturedError, match=r"not ready for|was dropped"):
        captured(cluster, tmp_path / "run", live)
    assert list((host.directory / "prof").rglob("*_ascend_pt")) == []


@pytest.mark.skipif(not os.path.exists("/usr/bin/openssl"), reason="no openssl to make certificates with")
def test_with_certificates_tls_ends_here_and_without_them_the_daemon_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    certificates = make_certificates(tmp_path / "certs")
    cluster.add(1)
    live = start_daemon(cluster, cluster.hosts[0], str(certificates))
    cluster.job(environment=BY_DAEMON).start()
    wait_for_job(cluster.hosts[0])
    with pytest.raises(NotCapturedError, match=r"does not answer as msMonitor does|closed|reset"):
        captured(cluster, tmp_path / "plain", live)
    result = captured(cluster, tmp_path / "run", replace(live, certificates=str(certificates)))
    assert result.captured.lost == {}
    assert len(list((tmp_path / "run").rglob("step_trace_time.csv"))) == 2
