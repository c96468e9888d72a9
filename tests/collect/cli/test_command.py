"""cluster-collect as a process: streams, exit codes, modes; against real SSH servers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from cluster_collect.remote.reader import reader
from cluster_collect.store.run_files import locked
from cluster_run.manifest import read_manifest
from tests.collect.helpers import rank_table, tree
from tests.commands import ran

from .conftest import CAPTURE, OUTPUT, Hosts, run_collect, write_capture

_BINARIES = ("trace_0.bin", "trace_1.bin")


def test_all_hosts_are_collected_and_the_table_on_stdout_says_so(hosts: Hosts) -> None:
    roots = [hosts.add("alpha"), hosts.add("beta")]
    result = hosts.collect("--output", "run", "--what", "full")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["host", "state", "files", "size", "time"]
    assert lines[1].split()[:5] == ["✓", "1", "alpha", "complete", "3"]
    assert lines[2].split()[:5] == ["✓", "2", "beta", "complete", "3"]
    assert "2 of 2 hosts complete: 6 files" in lines[-1]
    assert lines[-1].endswith("in run")
    for number, root in enumerate(roots, start=1):
        assert tree(hosts.directory / f"run/cluster_profiler/{number}/profiler") == tree(root)
    assert (hosts.directory / "run/host_ips_mapping.txt").read_text() == "alpha 1\nbeta 2\n"


def test_progress_goes_to_stderr_in_plain_lines_without_a_terminal(hosts: Hosts) -> None:
    hosts.add("alpha")
    result = hosts.collect("--output", "run", apart=True)
    assert "alpha: complete, 1 file" in result.stderr
    assert result.stderr.endswith("next: cluster-analyse run\n")
    assert "\x1b" not in result.stderr + result.stdout
    assert "\r" not in result.stderr


def test_quiet_says_nothing_but_the_result(hosts: Hosts) -> None:
    hosts.add("alpha")
    result = hosts.collect("--output", "run", "-q")
    assert result.stderr == ""
    assert "1 of 1 host complete" in result.stdout


def test_verbose_names_the_method_and_very_verbose_every_file(hosts: Hosts) -> None:
    hosts.add("alpha")
    once = hosts.collect("--output", "run1", "-v", "--what", "full").stderr
    assert "alpha: 3 files" in once
    assert "tar" in once
    assert "trace_0.bin" not in once
    assert "stored cluster_profiler/1/profiler/" in hosts.collect("--output", "run2", "-vv").stderr


def test_json_on_stdout_can_be_read_even_with_v(hosts: Hosts) -> None:
    hosts.add("alpha")
    result = hosts.collect("--output", "run", "--json", "-v")
    document = json.loads(result.stdout)
    assert document["schema"] == "cluster-collect/1"
    assert (document["mode"], document["exit_code"]) == ("collect", 0)
    (host,) = document["hosts"]
    assert (host["server_id"], host["state"], host["n_files"]) == ("alpha", "complete", 1)
    assert document["totals"]["n_complete"] == 1


def test_one_host_that_is_down_costs_exit_code_3_and_is_named_with_advice(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("beta")
    hosts.entries[1]["port"] = 1
    result = hosts.collect("--output", "run", "--attempts", "1")
    assert result.returncode == 3
    assert "beta: failed" in result.stderr
    assert "1 of 2 hosts complete" in result.stdout
    assert "\nbeta: " in result.stdout
    assert "  → is the host up" in result.stdout
    states = {
        host.server_id: host.state for host in read_manifest(hosts.directory / "run/manifest.json").hosts
    }
    assert states == {"alpha": "complete", "beta": "failed"}


def test_only_failures_are_exit_code_1(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.entries[0]["port"] = 1
    result = hosts.collect("--output", "run", "--attempts", "1", "--json")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["exit_code"] == 1
    assert document["hosts"][0]["failure"] == "unreachable"


def test_the_failures_of_many_hosts_are_one_line_of_advice(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.entries += [
        {"address": f"127.0.1.{number}", "port": 1, "server_id": f"node{number}", "profiler_root": "/x"}
        for number in range(1, 6)
    ]
    result = hosts.collect("--output", "run", "--attempts", "1")
    assert result.returncode == 3
    assert result.stdout.count("is the host up") == 1
    assert "\nnode[1-5] (5 hosts): " in result.stdout


def test_a_dry_run_shows_what_would_be_fetched_and_writes_nothing(hosts: Hosts) -> None:
    root = hosts.add("alpha", size_bytes=1_500_000)
    before = tree(hosts.directory / "data")
    result = hosts.collect("--output", "run", "--what", "full", "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "would fetch 3 files, 3.0 MB into run" in result.stdout
    assert not (hosts.directory / "run").exists()
    assert tree(hosts.directory / "data") == before
    columns = hosts.collect("--what", "columns", "--dry-run").stdout
    assert f"; columns, if it can run {reader().name}" in columns
    document = json.loads(hosts.collect("--what", "full", "--dry-run", "--json").stdout)
    sources = [file["source"] for file in document["hosts"][0]["files"]]
    assert sorted(sources) == sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()
    )


def test_a_check_shows_login_files_space_clock_and_tools_and_writes_nothing(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("beta")
    hosts.entries[1]["profiler_root"] = "/nowhere"
    result = hosts.collect("--check", "--output", "run")
    assert result.returncode == 3
    head, alpha, *_ = result.stdout.splitlines()
    assert head.split()[:6] == ["host", "login", "files", "size", "free", "clock"]
    assert "alpha" in alpha
    assert " ms" in alpha
    assert "tar" in alpha
    assert "\nbeta: " in result.stdout
    assert "/nowhere: missing" in result.stdout
    assert "→ check profiler_root (or local) of this host" in result.stdout
    assert "1 of 2 hosts ready" in result.stdout
    assert not (hosts.directory / "run").exists()
    document = json.loads(hosts.collect("--check", "--json").stdout)
    assert document["hosts"][0]["tools"]
    assert abs(document["hosts"][0]["clock_offset_ms"]) < 1000


def test_a_limit_collects_some_hosts_and_a_second_call_the_others(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("beta")
    assert hosts.collect("--output", "run", "--limit", "beta").returncode == 0
    assert not (hosts.directory / "run/cluster_profiler/1").exists()
    result = hosts.collect("--output", "run", "--limit", "alpha")
    assert result.returncode == 0
    assert "2 of 2 hosts complete" in result.stdout
    mapping = (hosts.directory / "run/host_ips_mapping.txt").read_text()
    assert sorted(mapping.splitlines()) == ["alpha 1", "beta 2"]


def test_without_output_the_run_directory_is_named_by_date_and_time(hosts: Hosts) -> None:
    hosts.add("alpha")
    assert hosts.collect().returncode == 0
    (run,) = hosts.directory.glob("run-*")
    assert len(run.name) == len("run-20250101-120000")
    assert (run / "manifest.json").exists()


def test_the_inventory_may_name_output_and_rank_table_and_options_win(hosts: Hosts) -> None:
    hosts.add("alpha")
    rank_table(hosts.directory / "ranks.json", {"alpha": [0]})
    inventory = str(hosts.write(output="named", rank_table="ranks.json"))
    assert run_collect(["--inventory", inventory], Path("/")).returncode == 0
    assert (hosts.directory / "named/ranks.json").exists()
    other = rank_table(hosts.directory / "other.json", {"alpha": [0]})
    arguments = ["--inventory", inventory, "--output", "given", "--rank-table", str(other)]
    assert run_collect(arguments, hosts.directory).returncode == 0
    assert (hosts.directory / "given/other.json").exists()


def test_a_rank_table_of_other_hosts_is_warned_of_and_costs_exit_code_3(hosts: Hosts) -> None:
    hosts.add("alpha")
    table = rank_table(hosts.directory / "hccl.json", {"alpha": [0], "10.0.0.7": [1]})
    result = hosts.collect("--output", "run", "--rank-table", str(table))
    assert result.returncode == 3
    assert "warning: " in result.stderr
    for stream in (result.stderr, result.stdout):
        assert "10.0.0.7 of " in stream
        assert "hccl.json (1 rank) is no host of" in stream
        assert "hosts.yaml" in stream
    assert "  → add the host to the inventory" in result.stdout
    document = json.loads(hosts.collect("--output", "run", "--rank-table", str(table), "--json").stdout)
    assert "10.0.0.7" in document["warnings"][0]


def test_a_run_directory_in_use_is_refused_with_its_owner(hosts: Hosts) -> None:
    hosts.add("alpha")
    with locked(hosts.directory / "run"):
        result = hosts.collect("--output", "run", "--json")
    assert result.returncode == 1
    assert "cluster-collect: " in result.stderr
    document = json.loads(result.stdout)
    assert document["exit_code"] == 1
    assert document["error"]["message"]


def test_a_reader_that_stops_reading_is_no_error(hosts: Hosts) -> None:
    hosts.add("alpha")
    inventory = hosts.write()
    collect = (
        f"{sys.executable} -m cluster_collect --inventory {shlex.quote(str(inventory))} --output run --json"
    )
    command = f"{collect} | true; echo ${{PIPESTATUS[0]}}"
    result = ran(["bash", "-c", command], cwd=hosts.directory, check=True)
    assert result.stdout == "0\n"
    assert "Traceback" not in result.stderr


def test_a_terminal_without_utf8_still_gets_its_result(hosts: Hosts) -> None:
    hosts.add("alpha")
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = hosts.collect("--output", "run", environment=environment, apart=True)
    assert result.returncode == 0, result.stderr
    assert "alpha" in result.stdout


def test_hosts_on_the_command_line_need_no_inventory(hosts: Hosts) -> None:
    root = hosts.add("alpha")
    address = f"{hosts.lab.user}@{hosts.entries[0]['address']}:{hosts.entries[0]['port']}"
    arguments = ["--hosts", address, "--profiler-root", str(root), "--output", "run"]
    for key in ("identity_file", "known_hosts", "ssh_config"):
        arguments += ["--set", f"{key}={hosts.defaults[key]}"]
    result = run_collect(arguments, hosts.directory)
    assert result.returncode == 0, result.stderr
    assert (
        hosts.directory / f"run/cluster_profiler/1/profiler/{CAPTURE}/{OUTPUT}/step_trace_time.csv"
    ).exists()


def test_a_shared_file_system_needs_no_server(tmp_path: Path) -> None:
    write_capture(tmp_path / "prof/node1")
    write_capture(tmp_path / "prof/node2")
    (tmp_path / "hosts.yaml").write_text(
        "version: 1\nhosts: [{local: 'prof/node[1-2]', server_id: 'n[1-2]'}]\n"
    )
    result = run_collect(["--inventory", "hosts.yaml", "--output", "run"], tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run/host_ips_mapping.txt").read_text() == "n1 1\nn2 2\n"


def test_a_host_without_profiler_data_is_a_failure_and_no_silent_success(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_capture(tmp_path / "good")
    (tmp_path / "hosts.yaml").write_text(
        "version: 1\nhosts: [{local: empty, server_id: a}, {local: good, server_id: b}]\n"
    )
    result = run_collect(["--inventory", "hosts.yaml", "--output", "run"], tmp_path)
    assert result.returncode == 3
    assert "a: no profiler data below" in result.stdout


@pytest.mark.slow
def test_captures_are_chosen_on_the_command_line(hosts: Hosts) -> None:
    root = hosts.add("alpha")
    shutil.rmtree(root)
    for job in ("job-1", "job-2"):
        write_capture(root / job)
    two_hours_ago_s = time.time() - 7200
    for path in (root / "job-1").rglob("*"):
        os.utime(path, (two_hours_ago_s, two_hours_ago_s))
    chosen = {
        ("full", "--capture", "job-2", "--exclude", "*.bin"): {"job-2/step_trace_time.csv"},
        ("full", "--since", "1h"): {f"job-2/{name}" for name in ("step_trace_time.csv", *_BINARIES)},
        ("analysis", "job-1/*"): {"job-1/step_trace_time.csv"},
    }
    for number, (what, wanted) in enumerate(chosen.items()):
        result = hosts.collect("--output", f"run{number}", "--what", *what)
        assert result.returncode == 0, result.stderr
        found = tree(hosts.directory / f"run{number}/cluster_profiler/1/profiler")
        assert {name.replace(f"{CAPTURE}/{OUTPUT}/", "") for name in found} == wanted
