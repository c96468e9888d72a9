"""The main way, against real OpenSSH servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.faults import RunLockedError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import HostSpec
from cluster_collect.store.run_files import locked
from cluster_collect.transfer.pool import look
from cluster_run.errors import InputError
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    QUICK,
    OneHost,
    Recorder,
    collected,
    file_of,
    host_tree,
    local_host,
    make_capture,
    rank_table,
    spec_for,
    tree,
)
from tests.commands import ran

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
    # A later call for one host keeps the others.
    later = collected(specs[1:], run, FULL)
    assert [(host.host, host.state) for host in later.hosts] == [("1", "complete"), ("2", "complete")]
    assert (run / "host_ips_mapping.txt").read_text() == "server-1 1\nserver-2 2\n"


ANALYSIS = {
    *("profiler_info_0.json", "profiler_metadata.json", "step_trace_time.csv"),
    *("communication.json", "communication_matrix.json"),
}


@pytest.mark.parametrize(
    ("what", "names"),
    [(("analysis",), ANALYSIS), (("*.log", "*/data.bin"), {"data.bin", "train.log"})],
    ids=["the analysis leaves traces and raw data there", "globs choose by path or name"],
)
def test_only_what_was_chosen_comes(host: OneHost, what: tuple[str, ...], names: set[str]) -> None:
    (host.root / "train.log").write_text("log")
    host.collect(replace(QUICK, what=what))
    assert {os.path.basename(path) for path in host.landed()} == names


@pytest.mark.parametrize("compression", ["zstd", "gzip", "none"])
def test_every_compression_brings_the_same_files(host: OneHost, compression: str) -> None:
    make_capture(host.root, 1, size_bytes=700_000)
    watch = Recorder()
    host.collect_all(replace(FULL, compression=compression), watch)
    assert watch.notes[1:] == [{"none": "tar"}.get(compression, f"tar+{compression}")]


def test_profiler_text_travels_at_a_tenth_of_its_size(host: OneHost) -> None:
    events = [
        {"ph": "X", "name": f"aten::mm_{n % 50}", "ts": n * 13.25, "dur": n % 97} for n in range(20_000)
    ]
    next(host.root.rglob("trace_view.json")).write_text(json.dumps(events))
    next(host.root.rglob("communication.json")).write_text("{}")
    outcome = host.collect_all()
    assert outcome.files.stored_bytes > 1_000_000
    assert outcome.wire_bytes < outcome.files.stored_bytes / 5


def test_a_second_call_fetches_nothing_but_what_changed_or_was_lost_here(host: OneHost) -> None:
    first = host.collect_all()
    again = Recorder()
    second = host.collect_all(watch=again)
    assert (again.n_planned, again.stored, second.wire_bytes) == ([0], [], 0)
    assert second.files == first.files
    next(host.root.rglob("profiler_info_0.json")).write_text('{"rank": 0}')
    lost = file_of(first, "communication.json")
    (host.run / lost.path).unlink()
    third = Recorder()
    host.collect_all(watch=third)
    assert {os.path.basename(path) for path in third.stored} == {"profiler_info_0.json", "communication.json"}


def test_files_that_are_gone_from_the_host_stay_in_run_and_manifest(host: OneHost) -> None:
    host.collect()
    next(host.root.rglob("profiler_metadata.json")).unlink()
    file = file_of(host.collect(), "profiler_metadata.json")
    assert (host.run / file.path).exists()
    assert file.reason == "kept from an earlier call"


def test_a_run_directory_of_another_inventory_is_refused(host: OneHost) -> None:
    host.collect()
    with pytest.raises(InputError, match="host 1 is server-1 there and other in this inventory"):
        host.having(server_id=ServerId("other")).collect()


def test_the_rank_table_is_copied_under_its_own_name(host: OneHost, tmp_path: Path) -> None:
    for name, copied in (("rank_table_2p.json", "rank_table_2p.json"), ("hccl.cfg", "hccl.cfg.json")):
        table = rank_table(tmp_path / name, {"s": [0]})
        run = tmp_path / f"run-{name}"
        collected(host.spec, run, rank_table=table)
        assert (run / copied).read_bytes() == table.read_bytes()


def test_prepare_runs_first_and_its_output_is_kept(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    root = tmp_path / "host's $(dir)"
    make_capture(root)
    command = f"""cd {tmp_path}/host*
mkdir late_ascend_pt && echo '{{}}' > late_ascend_pt/profiler_info_7.json
echo "it's done"; echo to-stderr >&2"""
    host = OneHost(spec_for(lab, server, root, prepare=command), root, tmp_path / "run")
    host.collect_all()
    assert "late_ascend_pt/profiler_info_7.json" in host.landed()
    assert (host.run / "cluster_profiler/1/prepare.log").read_text() == "it's done\nto-stderr\n"


def test_a_prepare_that_fails_is_told_and_the_rest_is_collected(host: OneHost) -> None:
    outcome = host.having(prepare="echo no licence; exit 7").collect(QUICK)
    assert (outcome.state, outcome.reason) == ("partial", "prepare exited with 7: no licence")
    assert outcome.advice == "its output is in the run directory, in cluster_profiler/1/prepare.log"
    assert outcome.files.n_stored == 5


def test_a_directory_of_a_shared_file_system_lands_like_a_host(tmp_path: Path) -> None:
    make_capture(tmp_path / "shared", size_bytes=3_000_000, n_more=100)
    host = local_host(tmp_path / "shared", tmp_path / "run").having(prepare="echo here")
    host.collect_all()
    assert (host.run / "cluster_profiler/1/prepare.log").read_text() == "here\n"
    assert host.planned() == 0


def test_a_missing_root_and_an_empty_root_are_failures_that_say_what_to_check(
    lab: SshLab, two_servers: TWO, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    missing = spec_for(lab, two_servers[0], tmp_path / "nowhere", 1)
    empty = spec_for(lab, two_servers[1], tmp_path / "empty", 2)
    local = HostSpec(HostId("3"), ServerId("s"), local=str(tmp_path / "nowhere"), transport="local")
    hosts = collected([missing, empty, local], tmp_path / "run").hosts
    assert [(host.state, host.reason.split(":")[0]) for host in hosts] == [
        ("failed", str(tmp_path / "nowhere")),
        ("failed", f"no profiler data below {tmp_path / 'empty'}"),
        ("failed", str(tmp_path / "nowhere")),
    ]
    assert all("profiler_root" in host.advice for host in hosts)


def test_a_look_writes_nothing_and_knows_sizes(lab: SshLab, two_servers: TWO, tmp_path: Path) -> None:
    make_capture(tmp_path / "host")
    specs = [
        spec_for(lab, server, tmp_path / name, number)
        for number, (server, name) in enumerate(zip(two_servers, ("host", "nowhere"), strict=True), 1)
    ]
    before = tree(tmp_path / "host")
    good, bad = asyncio.run(look(specs, QUICK, ProgressListener()))
    assert (len(good.files), good.method, good.outcome.reason) == (5, "tar+zstd", "")
    assert good.n_bytes == sum((tmp_path / "host" / file.source).stat().st_size for file in good.files)
    assert "nowhere" in bad.outcome.reason
    assert (good.free_bytes or 0) > 0
    assert abs(good.outcome.clock_offset_ms or 1e9) < 5000
    assert dict(good.tools)["tar"].startswith("tar (GNU tar)")
    assert tree(tmp_path / "host") == before
    assert sorted(os.listdir(tmp_path)) == ["host"]


def test_odd_names_arrive_as_they_are(host: OneHost) -> None:
    root = os.fsencode(host.root / "odd_ascend_pt")
    os.makedirs(root)
    names = [
        b"-rf", b"new\nline", b"quote'\"", b"$(touch pwned)`id`", "é中".encode(), b"bad\xff\x81name",
        b"x" * 255, b"back\\slash\\n", b"*?[a]", b" lead and trail ", b"tab\t", b"%s%n",
    ]  # fmt: skip
    for number, name in enumerate(names):
        with open(os.path.join(root, name), "wb") as stream:
            stream.write(b"%d" % number)
    outcome = host.collect_all()
    assert read_manifest(host.run / "manifest.json").hosts[0].files == outcome.files


def test_a_root_with_odd_bytes_a_link_and_a_tilde_is_entered(host: OneHost, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/it's \x81\xff\n$(x) root"))
    host.root.rename(odd)
    host.root.symlink_to(odd)
    for number, root in enumerate((odd, host.root, os.path.relpath(odd, Path.home()))):
        OneHost(host.having(profiler_root=str(root)).spec, odd, tmp_path / f"run{number}").collect_all()


def test_links_are_told_and_neither_followed_nor_made(host: OneHost) -> None:
    capture = next(host.root.iterdir())
    (capture / "loop").symlink_to(".")
    (capture / "step_trace_time.csv").symlink_to("/etc/passwd")
    os.mkfifo(capture / "pipe")
    os.link(capture / "profiler_metadata.json", capture / "hard.json")
    outcome = host.collect()
    skipped = {os.path.basename(one.source): one.reason for one in outcome.files if one.state == "skipped"}
    assert skipped == {"pipe": "a fifo: not copied"}
    assert (outcome.state, outcome.failure) == ("partial", "left-out")
    assert file_of(outcome, "pt/step_trace_time.csv").reason == "a symbolic link: not followed"
    landed = host.landed()
    assert landed[f"{capture.name}/hard.json"] == landed[f"{capture.name}/profiler_metadata.json"]
    assert not any(os.path.islink(path) for path in host.run.rglob("*"))


def test_two_collections_in_one_directory_do_not_meet_and_nothing_is_left_running(host: OneHost) -> None:
    with locked(host.run), pytest.raises(RunLockedError, match=f"process {os.getpid()}"):
        host.collect()
    host.collect_all()
    listed = ran(["ps", "-eo", "args"], check=True).stdout
    assert str(host.root) not in listed
