"""What is told of a host that is not complete: the worst first, and nothing of it hidden."""

from __future__ import annotations

from cluster_collect.spec import HostSpec
from cluster_collect.transfer.outcome import OutcomeSoFar, outcome_of
from cluster_collect.transfer.survey import Survey
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH

SPEC = HostSpec(HostId("1"), ServerId("s"), address="a", profiler_root="/data")


def _file(name: str, reason: str) -> CollectedFile:
    return CollectedFile(name, name, 1, 1, "", "failed" if reason else "stored", reason)


def test_directories_that_could_not_be_listed_are_told_beside_files_that_are_missing() -> None:
    problem = "not everything could be listed: b: Permission denied"
    so_far = OutcomeSoFar(survey=Survey([], None, problem=problem, is_denied=True))
    so_far.files = [_file("a/x", ""), _file("a/y", "Permission denied")]
    outcome = outcome_of(SPEC, so_far, (), 0.0)
    assert (outcome.state, outcome.failure) == ("partial", "listing")
    assert outcome.reason == f"{problem}; 1 file missing: a/y: Permission denied"
    assert outcome.advice == "let the login user read it, or set become: sudo for this host"


@BOTH
def test_what_a_host_says_instead_of_running_commands_is_told(start: Start, transport: str) -> None:
    host = start({"ForceCommand": "echo This account is closed.; false"}, transport=transport)
    outcome = host.collect()
    assert (outcome.state, outcome.failure) == ("failed", "no-shell")
    assert outcome.reason == (
        "the host runs no commands for us (This account is closed.), and it offers no SFTP"
    )
