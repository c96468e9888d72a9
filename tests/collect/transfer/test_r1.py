"""The r1.x tree: what the script of that time would have left, to the byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_run.layout import host_directory
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    QUICK,
    Recorder,
    collected,
    file_of,
    host_tree,
    only_host,
    spec_for,
    tree,
)

FILES = {
    "step_trace_raw_{}_detail_time.csv": "step_num,start_point\n1,{}\n",
    "hccl_raw_{}.csv": "step_num,communication_cost\n1,{}\n",
    "output_op_compute_time_{}.txt": "{}",
    "ascend_timeline_display_{}.json": "[{}]",
    "minddata_pipeline_raw_{}.csv": "op_id,{}\n",
    "step_trace_point_info.json": '{{"fp": "{}"}}',
}


def write_device(directory: Path, device: int, shared: str | None = None) -> None:
    directory.mkdir(parents=True)
    for name, text in FILES.items():
        value = device if shared is None or "{}" in name else shared
        (directory / name.format(device)).write_text(text.format(value))
    (directory / "NODOT").write_text("the script copies *.* only")


def test_flat_directories_give_the_scripts_tree_and_mapping(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    for number in (0, 1):
        write_device(tmp_path / f"host{number}" / "profiler", number)
    specs = [spec_for(lab, server, tmp_path / f"host{n}", n + 1) for n, server in enumerate(two_servers)]
    table = tmp_path / "hccl.json"
    device = '{"device_id": "0", "rank_id": "0"}'
    table.write_text(f'{{"version": "1.0", "server_list": [{{"server_id": "s", "device": [{device}]}}]}}')
    collected(specs, tmp_path / "run", rank_table=table)
    (tmp_path / "run" / "manifest.json").unlink()

    expected = {"hccl.json": table.read_bytes(), "host_ips_mapping.txt": b"server-1 1\nserver-2 2\n"}
    for number in (0, 1):
        for name, content in tree(tmp_path / f"host{number}" / "profiler").items():
            if "." in name:
                expected[f"cluster_profiler/{number + 1}/profiler/{name}"] = content
    assert tree(tmp_path / "run") == expected


@pytest.mark.parametrize("is_local", [False, True])
def test_device_folders_are_laid_flat_and_equal_files_stored_once(
    lab: SshLab, server: SshServer, tmp_path: Path, is_local: bool
) -> None:
    for device in range(3):
        directory = tmp_path / "host" / f"device{device}" / "data-2021" / "profiler-1"
        write_device(directory, device, shared="same")
    spec = spec_for(lab, server, tmp_path / "host", device_regex="device", output_dir="data")
    if is_local:
        spec = spec_for(
            lab,
            server,
            "",
            local=str(tmp_path / "host"),
            transport="local",
            device_regex="device",
            output_dir="data",
        )
    outcome = only_host(collected(spec, tmp_path / "run"))
    assert outcome.reason == ""
    landed = host_tree(tmp_path / "run")
    assert sorted(landed) == sorted({name.format(device) for name in FILES for device in range(3)})
    shared = [file for file in outcome.files if file.source.endswith("step_trace_point_info.json")]
    assert [file.reason for file in shared] == [
        "same content as device2/data-2021/profiler-1/step_trace_point_info.json, stored once",
        "same content as device2/data-2021/profiler-1/step_trace_point_info.json, stored once",
        "",
    ]
    assert len({file.path for file in shared}) == 1

    again = Recorder()
    collected(spec, tmp_path / "run", QUICK, again)
    assert again.n_planned == [0]
    assert host_tree(tmp_path / "run") == landed


def test_files_for_one_place_with_other_content_are_both_kept_and_told(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    for device in range(2):
        write_device(tmp_path / "host" / f"device{device}" / "profiler", device)
    spec = spec_for(lab, server, tmp_path / "host", device_regex="device")
    outcome = only_host(collected(spec, tmp_path / "run"))
    assert outcome.state == "complete"
    first = file_of(outcome, "device0/profiler/step_trace_point_info.json")
    second = file_of(outcome, "device1/profiler/step_trace_point_info.json")
    profiler = os.path.relpath(host_directory(tmp_path / "run", spec.host), tmp_path / "run")
    assert second.path == f"{profiler}/step_trace_point_info.json"
    assert first.path == f"{profiler}/collided/device0/profiler/step_trace_point_info.json"
    assert first.reason == (
        "has the name of device1/profiler/step_trace_point_info.json, which has its place, and other content"
    )
    for file, device in ((first, 0), (second, 1)):
        assert (tmp_path / "run" / file.path).read_text() == f'{{"fp": "{device}"}}'


def test_a_copy_that_was_stored_once_comes_back_when_its_twin_changes(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    for device in range(2):
        write_device(tmp_path / "host" / f"device{device}" / "profiler", device, shared="same")
    spec = spec_for(lab, server, tmp_path / "host", device_regex="device")
    collected(spec, tmp_path / "run")
    twin = tmp_path / "host" / "device1" / "profiler" / "step_trace_point_info.json"
    twin.write_text("changed since")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    for device in range(2):
        source = f"device{device}/profiler/step_trace_point_info.json"
        stored = tmp_path / "run" / file_of(outcome, source).path
        assert stored.read_bytes() == (tmp_path / "host" / source).read_bytes()
