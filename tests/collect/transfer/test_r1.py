"""The r1.x tree: what the script of that time would have left, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.sshd import SshLab, SshServer
from tests.collect.helpers import QUICK, OneHost, collected, file_of, local_host, rank_table, spec_for, tree

FILES = {
    "step_trace_raw_{}_detail_time.csv": "step_num,start_point\n1,{}\n",
    "hccl_raw_{}.csv": "step_num,communication_cost\n1,{}\n",
    "output_op_compute_time_{}.txt": "{}",
    "ascend_timeline_display_{}.json": "[{}]",
    "minddata_pipeline_raw_{}.csv": "op_id,{}\n",
    "step_trace_point_info.json": '{{"fp": "{}"}}',
}
POINTS = "step_trace_point_info.json"


def write_device(directory: Path, device: int, shared: str | None = None) -> None:
    directory.mkdir(parents=True)
    for name, text in FILES.items():
        value = device if shared is None or "{}" in name else shared
        (directory / name.format(device)).write_text(text.format(value))
    (directory / "NODOT").write_text("the script copies *.* only")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """No capture is here: each test writes what devices left."""
    return tmp_path / "host"


@pytest.fixture
def devices(host: OneHost) -> OneHost:
    return host.having(device_regex="device")


def test_flat_directories_give_the_scripts_tree_and_mapping(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    for number in (0, 1):
        write_device(tmp_path / f"host{number}" / "profiler", number)
    specs = [spec_for(lab, server, tmp_path / f"host{n}", n + 1) for n, server in enumerate(two_servers)]
    table = rank_table(tmp_path / "hccl.json", {"s": [0]})
    collected(specs, tmp_path / "run", rank_table=table)
    (tmp_path / "run" / "manifest.json").unlink()
    expected = {"hccl.json": table.read_bytes(), "host_ips_mapping.txt": b"server-1 1\nserver-2 2\n"}
    for number in (0, 1):
        for name, content in tree(tmp_path / f"host{number}" / "profiler").items():
            if "." in name:
                expected[f"cluster_profiler/{number + 1}/profiler/{name}"] = content
    assert tree(tmp_path / "run") == expected


@pytest.mark.parametrize("is_local", [False, True])
def test_device_folders_are_laid_flat_and_equal_files_stored_once(host: OneHost, is_local: bool) -> None:
    for device in range(3):
        write_device(host.root / f"device{device}" / "data-2021" / "profiler-1", device, shared="same")
    host = (local_host(host.root, host.run) if is_local else host).having(
        device_regex="device", output_dir="data"
    )
    outcome = host.collect(QUICK)
    assert outcome.reason == ""
    landed = host.landed()
    assert sorted(landed) == sorted({name.format(device) for name in FILES for device in range(3)})
    shared = [file for file in outcome.files if file.source.endswith(POINTS)]
    twice = f"same content as device2/data-2021/profiler-1/{POINTS}, stored once"
    assert [file.reason for file in shared] == [twice, twice, ""]
    assert len({file.path for file in shared}) == 1
    assert host.planned(QUICK) == 0
    assert host.landed() == landed


def test_files_for_one_place_with_other_content_are_both_kept_and_told(devices: OneHost) -> None:
    for device in range(2):
        write_device(devices.root / f"device{device}" / "profiler", device)
    outcome = devices.collect(QUICK)
    assert outcome.state == "complete"
    first, second = (file_of(outcome, f"device{device}/profiler/{POINTS}") for device in range(2))
    assert second.path == f"cluster_profiler/1/profiler/{POINTS}"
    assert first.path == f"cluster_profiler/1/profiler/collided/device0/profiler/{POINTS}"
    assert first.reason == (
        f"has the name of device1/profiler/{POINTS}, which has its place, and other content"
    )
    for file, device in ((first, 0), (second, 1)):
        assert (devices.run / file.path).read_text() == f'{{"fp": "{device}"}}'


def test_a_copy_that_was_stored_once_comes_back_when_its_twin_changes(devices: OneHost) -> None:
    for device in range(2):
        write_device(devices.root / f"device{device}" / "profiler", device, shared="same")
    devices.collect(QUICK)
    (devices.root / "device1" / "profiler" / POINTS).write_text("changed since")
    outcome = devices.collect()
    for device in range(2):
        source = f"device{device}/profiler/{POINTS}"
        stored = devices.run / file_of(outcome, source).path
        assert stored.read_bytes() == (devices.root / source).read_bytes()
