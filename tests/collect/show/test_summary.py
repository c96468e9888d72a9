"""The result for people and for machines, whatever the hosts answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.show.context import Surroundings
from cluster_collect.show.json_result import check_json, collection_json, error_json, plan_json
from cluster_collect.show.summary import check_text, collection_text, plan_text
from cluster_collect.spec import HostSpec
from cluster_collect.transfer.plan import HostLook, PlannedFile
from cluster_run.errors import ExitCode, InputError
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile, FileList, FileState, HostOutcome, HostState

RUN = Path("run1")


def files(*states: FileState) -> tuple[CollectedFile, ...]:
    return tuple(
        CollectedFile(f"p/{number}", f"f{number}", 1000, 0, "", state, "" if state == "stored" else "why")
        for number, state in enumerate(states)
    )


def outcome(
    number: int,
    state: HostState = "complete",
    stored: Sequence[CollectedFile] = (),
    reason: str = "",
    advice: str = "",
    clock_offset_ms: float | None = 0.0,
) -> HostOutcome:
    return HostOutcome(
        HostId(str(number)),
        ServerId(f"node{number:02d}"),
        state,
        FileList(stored),
        reason,
        advice,
        clock_offset_ms,
        seconds=2.0,
        wire_bytes=100,
    )


def test_the_table_of_a_collection_to_the_letter() -> None:
    outcomes = [
        outcome(1, stored=files("stored", "stored")),
        outcome(2, "partial", files("stored", "failed"), "1 file missing: f1: why", "see manifest.json"),
        outcome(3, "failed", reason="no connection within 15 s", advice="is the host up?"),
        outcome(4, "failed", reason="no connection within 15 s", advice="is the host up?"),
    ]
    assert collection_text(outcomes, Surroundings(RUN, seconds=15.2)) == (
        "      host    state     files    size   time\n"
        "✓  1  node01  complete      2  2.0 kB  2.0 s\n"
        "▲  2  node02  partial       1  1.0 kB  2.0 s\n"
        "✗  3  node03  failed        0     0 B  2.0 s\n"
        "✗  4  node04  failed        0     0 B  2.0 s\n"
        "\n"
        "node02: 1 file missing: f1: why\n"
        "  → see manifest.json\n"
        "\n"
        "node[03-04] (2 hosts): no connection within 15 s\n"
        "  → is the host up?\n"
        "\n"
        "1 of 4 hosts complete: 3 files, 3.0 kB in 15 s, in run1\n"
        "  → call it again with --output run1: it fetches only what is missing\n"
    )


def test_many_hosts_that_are_well_share_a_row_and_the_others_keep_theirs() -> None:
    outcomes = [outcome(number, stored=files("stored")) for number in range(1, 100)]
    outcomes[49] = outcome(50, "failed", reason="down")
    lines = collection_text(outcomes, Surroundings(RUN)).splitlines()
    assert len(lines) == 8
    assert "node50" in lines[1]
    assert "node[01-49,51-99] (98 hosts)" in lines[2]
    assert lines[2].split()[-5:] == ["98", "98.0", "kB", "2.0", "s"]


def test_several_bad_files_are_named_up_to_three() -> None:
    bad = files("failed", "unstable", "failed", "failed", "stored")
    text = collection_text([outcome(1, "partial", bad, "3 files missing: f0: why")], Surroundings(RUN))
    assert "    f0: why\n    f1: why\n    f2: why\n    and 1 more, see manifest.json\n" in text


def test_a_clock_that_is_off_is_said_with_what_it_spoils() -> None:
    outcomes = [outcome(1, clock_offset_ms=-2500.0), outcome(2, clock_offset_ms=3000.0), outcome(3)]
    text = collection_text(outcomes, Surroundings(RUN))
    assert "node[01-02] (2 hosts): its clock is more than 1 s off" in text
    assert "chronyc" in text


def test_text_of_a_host_cannot_move_the_cursor() -> None:
    evil = outcome(1, "failed", reason="\x1b[2J\rall fine", advice="\x07")
    text = collection_text([evil], Surroundings(RUN))
    assert all(line.isprintable() for line in text.splitlines())


def test_ranks_without_a_host_are_part_of_the_result() -> None:
    around = Surroundings(RUN, missing="10.0.0.7 of hccl.json (8 ranks) is no host of hosts.yaml")
    for text in (collection_text([outcome(1)], around), plan_text([], around), check_text([], around)):
        assert "\nmissing: 10.0.0.7 of hccl.json (8 ranks) is no host of hosts.yaml\n  → " in text


def plan(*sizes: int, reason: str = "") -> HostLook:
    planned = tuple(PlannedFile(f"f{size}", f"p/{size}", size) for size in sizes)
    seen = HostOutcome(HostId("1"), ServerId("a"), "complete", FileList(files("skipped")), reason)
    return HostLook(seen, planned, "tar+zstd")


@pytest.mark.parametrize(("free", "enough"), [(3000, False), (3001, False), (4000, True), (None, True)])
def test_a_plan_says_when_there_is_not_enough_room(free: int | None, enough: bool) -> None:
    text = plan_text([plan(1000, 2000)], Surroundings(RUN, free_bytes=free, min_free_bytes=1000))
    assert ("not enough room here" not in text) is enough
    assert "would fetch 2 files, 3.0 kB into run1" in text


def test_sizes_of_files_that_come_as_columns_are_called_those_on_the_hosts() -> None:
    around = Surroundings(RUN, free_bytes=2000, are_reduced=True)
    text = plan_text([plan(1000, 2000)], around)
    assert "not enough room here if all come whole: 2.0 kB free\n" in text
    assert text.endswith(
        "; sizes are those on the hosts, columns take a few percent of them; nothing was copied\n"
    )
    assert "sizes are those on the hosts" in check_text([], around)
    assert json.loads(plan_json([plan(1000)], around, ExitCode.DONE))["are_reduced"]


def test_files_that_a_host_had_no_time_or_memory_to_read_are_told_and_counted() -> None:
    one = replace(outcome(1, stored=files("stored", "stored")), n_over_limits=2)
    text = collection_text([one], Surroundings(RUN))
    assert "node01: had no time or memory to read 2 files, which came whole\n  → " in text
    assert "--columns-memory" in text
    (host,) = json.loads(collection_json([one], Surroundings(RUN), ExitCode.DONE))["hosts"]
    assert host["n_over_limits"] == 2


def test_a_check_leaves_out_what_nobody_knows() -> None:
    planned = plan(1000, 2000, 2000)
    known = replace(
        planned,
        outcome=replace(planned.outcome, clock_offset_ms=12.4),
        method="tar",
        login_s=0.1,
        free_bytes=10**12,
        tools=(("tar", "tar (GNU tar) 1.34"),),
    )
    refused = HostOutcome(HostId("2"), ServerId("b"), "failed", reason="b: refused", advice="try")
    unknown = HostLook(refused)
    head, first, second, *_ = check_text([known, unknown], Surroundings(RUN)).splitlines()
    assert head.split() == ["host", "login", "files", "size", "free", "clock", "method", "tools"]
    assert " ".join(first.split()) == "✓ 1 a 0.1 s 3 5.0 kB 1.0 TB +12 ms tar tar 1.34"
    assert second.split() == ["✗", "2", "b"]
    head, *_ = check_text([unknown], Surroundings(RUN)).splitlines()
    assert head.split() == ["host"]


def test_json_names_every_file_that_is_not_simply_stored() -> None:
    name = b"bad\xff".decode(errors="surrogateescape")
    odd = CollectedFile("p", name, 1, 0, "", "failed", "\x1b")
    text = collection_json(
        [outcome(1, "partial", [*files("stored", "unstable"), odd], "why", "do")],
        Surroundings(RUN, 1.23456, warnings=("careful",)),
        ExitCode.INCOMPLETE,
    )
    document = json.loads(text.encode("ascii"))
    (host,) = document["hosts"]
    assert [(file["source"], file["state"]) for file in host["files"]] == [
        ("f1", "unstable"),
        (name, "failed"),
    ]
    assert document["warnings"] == ["careful"]
    assert document["totals"] == {
        "n_hosts": 1,
        "n_complete": 0,
        "n_files": 2,
        "n_bytes": 2000,
        "seconds": 1.235,
    }


def test_every_json_result_has_schema_tool_mode_and_code() -> None:
    texts = {
        "collect": collection_json([], Surroundings(RUN), ExitCode.DONE),
        "dry-run": plan_json([plan(1)], Surroundings(RUN), ExitCode.DONE),
        "check": check_json([plan()], Surroundings(RUN), ExitCode.DONE),
    }
    for mode, text in texts.items():
        document = json.loads(text)
        assert (document["schema"], document["mode"], document["exit_code"]) == ("cluster-collect/1", mode, 0)
        assert document["tool"]["name"] == "cluster-collect"
    failed = json.loads(error_json("check", InputError("a: gone", "find it")))
    assert failed["error"] == {"message": "a: gone", "advice": "find it"}
    assert failed["exit_code"] == 1


SPEC = HostSpec(
    HostId("1"),
    ServerId("a"),
    address="10.0.0.1",
    port=2222,
    user="trainer",
    identity_file="/k y",
    known_hosts="/kh",
    jump="b",
    ssh_config="/c",
    certificate_file="/cert",
    password="secret",
)


def test_a_failed_login_comes_with_the_command_to_try_by_hand() -> None:
    failed = HostOutcome(HostId("1"), ServerId("a"), "failed", reason="refused", failure="login")
    around = Surroundings(RUN, specs={HostId("1"): SPEC})
    command = (
        "ssh -F /c -p 2222 -i '/k y' -o CertificateFile=/cert -o UserKnownHostsFile=/kh -J b trainer@10.0.0.1"
    )
    assert f"  → try: {command}\n" in collection_text([failed], around)
    document = json.loads(collection_json([failed], around, ExitCode.FAILED))
    assert document["hosts"][0]["command"] == command


@pytest.mark.parametrize("failure", ["no-data", "prepare", "files-missing", ""])
def test_what_ssh_cannot_show_comes_without_a_command(failure: str) -> None:
    around = Surroundings(RUN, specs={HostId("1"): SPEC})
    assert around.command_to_try(HostId("1"), failure) == ""


def test_a_shared_file_system_has_no_command() -> None:
    spec = HostSpec(HostId("1"), ServerId("a"), local="/mnt/a", transport="local")
    assert Surroundings(RUN, specs={HostId("1"): spec}).command_to_try(HostId("1"), "stalled") == ""
