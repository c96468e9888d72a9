"""The main way, against real OpenSSH servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.faults import RunLockedError
from cluster_collect.progress_events import SilentListener
from cluster_collect.spec import HostSpec
from cluster_collect.store.lock import locked
from cluster_collect.transfer.pool import check, plan
from cluster_run.errors import InputError
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    QUICK,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)

TWO = tuple[SshServer, SshServer]


def test_two_hosts_land_whole_and_the_manifest_says_so(lab: SshLab, two_servers: TWO, tmp_path: Path) -> None:
    for rank in range(2):
        make_capture(tmp_path / f"host{rank}", rank)
    specs = [spec_for(lab, server, tmp_path / f"host{n}", n + 1) for n, server in enumerate(two_servers)]
    run = tmp_path / "run"

    manifest = collected(specs, run, FULL)

    assert [host.state for host in manifest.hosts] == ["complete", "complete"]
    for number in (1, 2):
        assert host_tree(run, number) == tree(tmp_path / f"host{number - 1}")
    assert (run / "host_ips_mapping.txt").read_text() == "server-1 1\nserver-2 2\n"
    assert read_manifest(run / "manifest.json") == manifest
    for host in manifest.hosts:
        assert host.wire_bytes > 0
        assert host.clock_offset_ms is not None
        for file in host.files:
            assert hashlib.sha256((run / file.path).read_bytes()).hexdigest() == file.sha256
            assert os.stat(run / file.path).st_mtime_ns == file.mtime_ns
    assert sorted(os.listdir(run)) == ["cluster_profiler", "host_ips_mapping.txt", "manifest.json"]


def test_analysis_selection_leaves_traces_and_raw_data_on_the_host(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run")
    names = {os.path.basename(path) for path in host_tree(tmp_path / "run")}
    assert names == {
        "profiler_info_0.json",
        "profiler_metadata.json",
        "step_trace_time.csv",
        "communication.json",
        "communication_matrix.json",
    }


def test_globs_choose_files_by_path_or_name(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    (tmp_path / "host" / "train.log").write_text("log")
    options = replace(QUICK, what=("*.log", "*/data.bin"))
    collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", options)
    assert sorted(os.path.basename(path) for path in host_tree(tmp_path / "run")) == ["data.bin", "train.log"]


@pytest.mark.parametrize("compression", ["zstd", "gzip", "none"])
def test_every_compression_brings_the_same_files(
    lab: SshLab, server: SshServer, tmp_path: Path, compression: str
) -> None:
    make_capture(tmp_path / "host", size_bytes=700_000)
    watch = Recorder()
    options = replace(FULL, compression=compression)
    collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", options, watch)
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
    assert watch.notes[1:] == [{"none": "tar"}.get(compression, f"tar+{compression}")]


def test_profiler_text_travels_at_a_tenth_of_its_size(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    capture = make_capture(tmp_path / "host")
    events = [
        {"ph": "X", "name": f"aten::mm_{n % 50}", "ts": n * 13.25, "dur": n % 97} for n in range(20_000)
    ]
    (capture / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").write_text(json.dumps(events))
    (capture / "ASCEND_PROFILER_OUTPUT" / "communication.json").write_text("{}")
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL))
    assert outcome.stored_bytes > 1_000_000
    assert outcome.wire_bytes < outcome.stored_bytes / 5


def test_a_second_call_fetches_nothing_and_a_changed_file_only(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    first = collected(spec, tmp_path / "run", FULL)

    again = Recorder()
    second = collected(spec, tmp_path / "run", FULL, again)
    assert again.n_planned == [0]
    assert again.stored == []
    assert only_host(second).files == only_host(first).files
    assert only_host(second).wire_bytes == 0

    (capture / "profiler_info_0.json").write_text('{"rank": 0}')
    third = Recorder()
    collected(spec, tmp_path / "run", FULL, third)
    assert [os.path.basename(path) for path in third.stored] == ["profiler_info_0.json"]
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_file_that_was_removed_here_is_fetched_again(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    lost = file_of(only_host(collected(spec, tmp_path / "run", FULL)), "communication.json")
    (tmp_path / "run" / lost.path).unlink()
    watch = Recorder()
    collected(spec, tmp_path / "run", FULL, watch)
    assert watch.stored == [lost.path]


def test_files_that_are_gone_from_the_host_stay_in_run_and_manifest(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    collected(spec, tmp_path / "run", FULL)
    (capture / "profiler_metadata.json").unlink()
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    file = file_of(outcome, "profiler_metadata.json")
    assert (tmp_path / "run" / file.path).exists()
    assert file.reason == "kept from an earlier call"


def test_a_later_call_for_one_host_keeps_the_others_in_the_manifest(
    lab: SshLab, two_servers: TWO, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    specs = [spec_for(lab, server, tmp_path / "host", n + 1) for n, server in enumerate(two_servers)]
    collected(specs, tmp_path / "run")
    manifest = collected(specs[1:], tmp_path / "run")
    assert [(host.host, host.state) for host in manifest.hosts] == [("1", "complete"), ("2", "complete")]
    assert (tmp_path / "run" / "host_ips_mapping.txt").read_text() == "server-1 1\nserver-2 2\n"


def test_a_run_directory_of_another_inventory_is_refused(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    collected(spec, tmp_path / "run")
    with pytest.raises(InputError, match="host 1 is server-1 there and other in this inventory"):
        collected(replace(spec, server_id=ServerId("other")), tmp_path / "run")


def test_the_rank_table_is_copied_under_its_own_name(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    for name, copied in (("rank_table_2p.json", "rank_table_2p.json"), ("hccl.cfg", "hccl.cfg.json")):
        table = tmp_path / name
        device = '{"device_id": "0", "rank_id": "0"}'
        table.write_text(f'{{"version": "1.0", "server_list": [{{"server_id": "s", "device": [{device}]}}]}}')
        run = tmp_path / f"run-{name}"
        collected(spec_for(lab, server, tmp_path / "host"), run, rank_table=table)
        assert (run / copied).read_bytes() == table.read_bytes()


def test_prepare_runs_first_and_its_output_is_kept(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    root = tmp_path / "host's $(dir)"
    make_capture(root)
    command = f"""cd {tmp_path}/host*
mkdir late_ascend_pt && echo '{{}}' > late_ascend_pt/profiler_info_7.json
echo "it's done"; echo to-stderr >&2"""
    spec = spec_for(lab, server, root, prepare=command)
    outcome = only_host(collected(spec, tmp_path / "run"))
    assert outcome.state == "complete", outcome.reason
    assert "late_ascend_pt/profiler_info_7.json" in host_tree(tmp_path / "run")
    assert (tmp_path / "run/cluster_profiler/1/prepare.log").read_text() == "it's done\nto-stderr\n"


def test_a_prepare_that_fails_is_told_and_the_rest_is_collected(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host", prepare="echo no licence; exit 7")
    outcome = only_host(collected(spec, tmp_path / "run"))
    assert (outcome.state, outcome.reason) == ("partial", "prepare exited with 7: no licence")
    assert outcome.advice == "its output is in the run directory, in cluster_profiler/1/prepare.log"
    assert outcome.n_stored == 5


def test_a_directory_of_a_shared_file_system_lands_like_a_host(tmp_path: Path) -> None:
    make_capture(tmp_path / "shared", size_bytes=3_000_000, n_more=100)
    spec = HostSpec(
        HostId("1"), ServerId("s"), local=str(tmp_path / "shared"), transport="local", prepare="echo here"
    )
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(tmp_path / "shared")
    assert (tmp_path / "run/cluster_profiler/1/prepare.log").read_text() == "here\n"
    again = Recorder()
    collected(spec, tmp_path / "run", FULL, again)
    assert again.n_planned == [0]


def test_a_missing_root_and_an_empty_root_are_failures_that_say_what_to_check(
    lab: SshLab, two_servers: TWO, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    missing = spec_for(lab, two_servers[0], tmp_path / "nowhere", 1)
    empty = spec_for(lab, two_servers[1], tmp_path / "empty", 2)
    local = HostSpec(HostId("3"), ServerId("s"), local=str(tmp_path / "nowhere"), transport="local")
    hosts = collected([missing, empty, local], tmp_path / "run").hosts
    assert [host.state for host in hosts] == ["failed"] * 3
    assert [host.reason.split(":")[0] for host in hosts] == [
        str(tmp_path / "nowhere"),
        f"no profiler data below {tmp_path / 'empty'}",
        str(tmp_path / "nowhere"),
    ]
    assert all("profiler_root" in host.advice for host in hosts)


def test_plan_and_check_write_nothing_and_know_sizes(lab: SshLab, two_servers: TWO, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    specs = [
        spec_for(lab, two_servers[0], tmp_path / "host", 1),
        spec_for(lab, two_servers[1], tmp_path / "nowhere", 2),
    ]
    before = tree(tmp_path / "host")
    good, bad = asyncio.run(plan(specs, QUICK, SilentListener()))
    assert (len(good.files), good.method, good.reason) == (5, "tar+zstd", "")
    assert good.n_bytes == sum((tmp_path / "host" / file.source).stat().st_size for file in good.files)
    assert "nowhere" in bad.reason

    healthy, sick = asyncio.run(check(specs, QUICK, SilentListener()))
    assert healthy.reason == ""
    assert healthy.n_files == 5
    assert (healthy.free_bytes or 0) > 0
    assert abs(healthy.clock_offset_ms or 1e9) < 5000
    assert dict(healthy.tools)["tar"].startswith("tar (GNU tar)")
    assert "nowhere" in sick.reason
    assert tree(tmp_path / "host") == before
    assert sorted(os.listdir(tmp_path)) == ["host"]


def test_odd_names_arrive_as_they_are(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "host" / "odd_ascend_pt")
    os.makedirs(root)
    names = [
        b"-rf", b"new\nline", b"quote'\"", b"$(touch pwned)`id`", "é中".encode(), b"bad\xff\x81name",
        b"x" * 255, b"back\\slash\\n", b"*?[a]", b" lead and trail ", b"tab\t", b"%s%n",
    ]  # fmt: skip
    for number, name in enumerate(names):
        with open(os.path.join(root, name), "wb") as stream:
            stream.write(b"%d" % number)
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
    assert read_manifest(tmp_path / "run" / "manifest.json").hosts[0].files == outcome.files


def test_a_root_with_odd_bytes_a_link_and_a_tilde_is_entered(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/it's \x81\xff\n$(x) root"))
    make_capture(odd)
    (tmp_path / "link").symlink_to(odd)
    for number, root in enumerate((odd, tmp_path / "link")):
        run = tmp_path / f"run{number}"
        assert only_host(collected(spec_for(lab, server, root), run, FULL)).state == "complete"
        assert host_tree(run) == tree(odd)


def test_links_are_told_and_neither_followed_nor_made(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    capture = make_capture(tmp_path / "host")
    (capture / "loop").symlink_to(".")
    (capture / "step_trace_time.csv").symlink_to("/etc/passwd")
    os.mkfifo(capture / "pipe")
    os.link(capture / "profiler_metadata.json", capture / "hard.json")
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL))
    skipped = {
        os.path.basename(file.source): file.reason for file in outcome.files if file.state == "skipped"
    }
    assert skipped == {"pipe": "a fifo: not copied"}
    assert (outcome.state, outcome.failure) == ("partial", "left-out")
    assert file_of(outcome, "pt/step_trace_time.csv").reason == "a symbolic link: not followed"
    landed = host_tree(tmp_path / "run")
    assert landed[f"{capture.name}/hard.json"] == landed[f"{capture.name}/profiler_metadata.json"]
    assert not any(os.path.islink(path) for path in (tmp_path / "run").rglob("*"))


def test_two_collections_in_one_directory_do_not_meet(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    with locked(tmp_path / "run"), pytest.raises(RunLockedError, match=f"process {os.getpid()}"):
        collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run")
    assert collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run").hosts[0].state == "complete"


def test_nothing_is_left_running_on_the_host(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run")
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "host") not in listed
