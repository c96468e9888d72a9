"""`make demo` finds exactly what it broke, over real SSH, and leaves no server behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_run.manifest import read_manifest
from demo.__main__ import MARKER, main
from demo.sshd import find_sshd
from tests.needed import needs_sshd

FAULT_KINDS = {"slow_rank", "slow_host", "slow_link", "slow_nic", "slow_host_pair", "slow_uplink"}


def demo(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", "--output", str(directory)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo, run where an older one lies."""
    directory = tmp_path_factory.mktemp("demo") / "a clone, é"  # as people name directories
    (directory / "run").mkdir(parents=True)
    (directory / MARKER).touch()
    (directory / "run" / "old").touch()
    return demo(directory), directory


@pytest.mark.slow
@needs_sshd
class TestDemo:
    def test_it_works_and_says_where_the_report_lies(
        self, finished: tuple[subprocess.CompletedProcess[str], Path]
    ) -> None:
        result, out = finished
        assert result.returncode == 0, result.stderr
        report = out / "run" / "cluster_analysis_output" / "report.html"
        assert str(report) in result.stdout
        assert report.stat().st_size > 1000
        for stage in ("simulate", "start an SSH server", "collect", "analyse", "in all"):
            assert stage in result.stdout

    def test_the_findings_name_exactly_the_two_faults(
        self, finished: tuple[subprocess.CompletedProcess[str], Path]
    ) -> None:
        _, out = finished
        document = json.loads((out / "run" / "cluster_analysis_output" / "findings.json").read_bytes())
        blamed = [finding for finding in document["findings"] if finding["kind"] in FAULT_KINDS]
        assert {finding["kind"] for finding in blamed} == {"slow_rank", "slow_link"}
        assert len(blamed) == 2
        by_kind = {finding["kind"]: finding for finding in blamed}
        assert (by_kind["slow_rank"]["ranks"], by_kind["slow_rank"]["hosts"]) == ([13], ["2"])
        ends = {frozenset((link["src"], link["dst"])) for link in by_kind["slow_link"]["links"]}
        assert ends == {frozenset((5, 9))}
        assert all(finding["severity"] in ("warning", "critical") for finding in blamed)
        assert document["verdict"] == "degraded"
        assert document["problems"] == []

    def test_every_file_came_over_ssh_with_its_content(
        self, finished: tuple[subprocess.CompletedProcess[str], Path]
    ) -> None:
        _, out = finished
        manifest = read_manifest(out / "run" / "manifest.json")
        assert [(host.host, host.server_id, host.state) for host in manifest.hosts] == [
            (str(number), f"10.20.0.{number}", "complete") for number in range(1, 5)
        ]
        for host in manifest.hosts:
            for file in host.files:
                source = out / "hosts" / host.server_id / "prof" / file.source
                assert (out / "run" / file.path).read_bytes() == source.read_bytes()

    def test_no_server_is_left(self, finished: tuple[subprocess.CompletedProcess[str], Path]) -> None:
        _, out = finished
        commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        assert not [command for command in commands if str(out).encode() in command]

    def test_it_can_be_run_again(self, finished: tuple[subprocess.CompletedProcess[str], Path]) -> None:
        result, out = finished
        assert result.returncode == 0, result.stderr
        assert not (out / "run" / "old").exists()


def test_without_sshd_it_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", str(tmp_path / "out")], sshd=None) == 1
    assert "apt-get install openssh-server" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@needs_sshd
def test_it_empties_no_directory_of_somebody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").touch()
    assert main(["--output", str(tmp_path)], find_sshd()) == 1
    assert (tmp_path / "precious").exists()
    assert "holds something else" in capsys.readouterr().err
