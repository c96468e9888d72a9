"""Commands that look closer at what a finding names, with the device filled in: to be copied to the host.

`npu-smi` and `hccn_tool` come with the driver, `hccl_test` with CANN (`tools/hccl_test`); `-i` is the number
of the device on its host. `HCCL_TEST_USE_DEVS` chooses the devices of one host.
"""

from __future__ import annotations

import shlex

from msgspec import Struct

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.subjects import locator
from cluster_run.findings import Finding, Place
from cluster_run.ids import HostId

#: Devices of one finding that get commands of their own; the others are asked in the same way.
MAX_PLACES = 4
_TEST = "./bin/all_reduce_test -b 8M -e 512M -f 2"


class Command(Struct, frozen=True):
    """A line for the shell, and where it is to be run; `place` where one of several places is meant."""

    where: str
    text: str
    place: Place | None = None


def naming_command(host: HostId, result: AnalysisResult) -> str | None:
    """Return the command that prints the name of a host; None where it is shown, or no file knows it."""
    run = result.document.run
    if not run.mapping or host in result.addresses:
        return None
    return shlex.join(["grep", f" {host}$", run.mapping])


def commands(finding: Finding, result: AnalysisResult) -> tuple[Command, ...]:
    """Return what to run for a fault, nearest first, a line a place; none for the workload's own findings.

    Nothing is returned for a rank whose device is not known: a command for a wrong device misleads.
    """
    tests = _link_test([place for place in finding.places if place.device is not None], finding, result)
    ask = _QUESTIONS.get(finding.kind)
    if ask is None:
        return tests
    asked = [place for place in finding.own_places if place.device is not None][:MAX_PLACES]
    is_only = len(asked) == 1
    return (
        *(Command(place_text(one, result), ask(one, finding), None if is_only else one) for one in asked),
        *tests,
    )


def place_text(place: Place, result: AnalysisResult) -> str:
    """Return `rank 13 = host 2 / device 5`, with the host's address where it may be shown."""
    return locator(result)(place).en


def _rank(place: Place, finding: Finding) -> str:
    if finding.cause in ("dispatch", "input"):
        return "top -b -n 1 -o %CPU | head -20"
    return "; ".join(f"npu-smi info -t {what} -i {place.device}" for what in ("common", "health"))


def _port(place: Place, finding: Finding) -> str:
    if finding.links and all(link.transport.upper() != "RDMA" for link in finding.links):
        return f"npu-smi info -t health -i {place.device}"
    return "; ".join(f"hccn_tool -i {place.device} -{what} -g" for what in ("link", "speed", "stat"))


_QUESTIONS = {"slow_rank": _rank, "slow_link": _port, "slow_nic": _port, "retransmission": _port}


def _link_test(known: list[Place], finding: Finding, result: AnalysisResult) -> tuple[Command, ...]:
    """Return the test of the first link, between its two devices."""
    if not finding.links:
        return ()
    by_rank = {place.rank: place for place in known}
    ends = [by_rank.get(rank) for rank in (finding.links[0].src, finding.links[0].dst)]
    first, second = ends
    if first is None or second is None:
        return ()
    where = f"{place_text(first, result)} and {place_text(second, result)}"
    if first.host == second.host:
        return (
            Command(where, f"HCCL_TEST_USE_DEVS={first.device},{second.device} mpirun -n 2 {_TEST} -p 2"),
        )
    return (Command(where, f"mpirun -f hostfile -n 2 {_TEST} -p 1"),)
