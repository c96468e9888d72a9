"""What is told of a host that is not complete: the worst first, and nothing of it hidden."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_collect.spec import HostSpec
from cluster_collect.transfer.outcome import Findings, outcome_of
from cluster_collect.transfer.survey import Survey
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile
from demo.sshd import SshLab
from tests.collect.helpers import BOTH, FULL, collected, host_tree, make_capture, only_host, spec_for, tree

SPEC = HostSpec(HostId("1"), ServerId("s"), address="a", profiler_root="/data")


def _file(name: str, reason: str) -> CollectedFile:
    return CollectedFile(name, name, 1, 1, "", "failed" if reason else "stored", reason)


def test_directories_that_could_not_be_listed_are_told_beside_files_that_are_missing() -> None:
    findings = Findings(
        survey=Survey([], None, problem="not everything could be listed: b: Permission denied")
    )
    findings.files = [_file("a/x", ""), _file("a/y", "Permission denied")]
    outcome = outcome_of(SPEC, findings, (), 0.0)
    assert (outcome.state, outcome.failure) == ("partial", "listing")
    assert outcome.reason == (
        "not everything could be listed: b: Permission denied; 1 file missing: a/y: Permission denied"
    )
    assert outcome.advice == "let the login user read it, or set become: sudo for this host"


@BOTH
def test_what_a_host_says_instead_of_running_commands_is_told(
    own_lab: SshLab, tmp_path: Path, transport: str
) -> None:
    server = own_lab.start("127.0.0.1", settings={"ForceCommand": "echo This account is closed.; false"})
    outcome = only_host(collected(spec_for(own_lab, server, "/data", transport=transport), tmp_path / "run"))
    assert (outcome.state, outcome.failure) == ("failed", "no-shell")
    assert outcome.reason == (
        "the host runs no commands for us (This account is closed.), and it offers no SFTP"
    )


def test_a_relative_profiler_root_is_listed_and_fetched_from_the_home(lab: SshLab, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    server = lab.start("127.0.0.1")
    spec = spec_for(lab, server, os.path.relpath(tmp_path / "host", Path.home()))
    assert only_host(collected(spec, tmp_path / "run", FULL)).reason == ""
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
