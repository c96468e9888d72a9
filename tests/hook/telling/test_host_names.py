from __future__ import annotations

from pathlib import Path

import pytest

from cluster_hook.telling.outcome import Outcome, without_names
from cluster_hook.telling.verdict import FindingLine, Verdict
from cluster_run.errors import ExitCode
from cluster_run.host_names import HostNames

_NAMES = HostNames([("node1.cluster", "10.0.0.1"), ("node2.cluster",), ("node12.cluster",)])


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("node1.cluster: refused", "host 1: refused"),
        ("NODE2: refused", "host 2: refused"),
        ("node12 and node1", "host 3 and host 1"),
        ("node123 is another", "node123 is another"),
        ("no directory /prof/node2/x", "no directory /prof/host 2/x"),
        ("10.0.0.1 port 22", "host 1 port 22"),
        ("connect to 192.168.7.9: refused", "connect to (an address): refused"),
        ("connect to [fe80::1%eth0]:22", "connect to [(an address)]:22"),
        ("connect to ::1 failed", "connect to (an address) failed"),
        ("Slurm 22.05.8 at 12:03:11", "Slurm 22.05.8 at 12:03:11"),
        ("ranks 1:2, a std::vector, 1.2.3.4.5", "ranks 1:2, a std::vector, 1.2.3.4.5"),
    ],
)
def test_a_text_names_hosts_by_their_numbers_and_holds_no_address(text: str, hidden: str) -> None:
    assert _NAMES.hidden(text) == hidden


def test_without_known_hosts_addresses_are_hidden_all_the_same() -> None:
    assert HostNames([]).hidden("10.0.0.1: refused") == "(an address): refused"


def test_every_sentence_of_an_outcome_is_without_names() -> None:
    finding = FindingLine("a", "slow_host", "warning", "Host node2 is slow.", 1.0, 0.1)
    verdict = Verdict("degraded", 8, 8, (finding,), ("node1.cluster: gone",))
    outcome = Outcome("1", "t", "", "analysed", ExitCode.DONE, Path("/r"), verdict, "10.0.0.1 is silent")
    line = without_names(outcome, _NAMES).line
    assert "node" not in line
    assert "10.0.0.1" not in line
    assert "host 2 is slow" in line
