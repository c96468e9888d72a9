"""Inventories that people have already: Ansible in INI or as JSON, a list of hosts, the rank table itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_run.errors import ClusterError, InputError


def load(path: Path, text: str) -> Inventory:
    path.write_text(text)
    return load_inventory(InventoryRequest(path, defaults={"profiler_root": "/prof"}), {})


INI = """
# all of them
lone ansible_port=2222

[rack1]
node[01:02]
other ansible_host=10.0.0.9 ansible_user='the trainer'

[rack1:vars]
ansible_user=trainer

[cluster:children]
rack1

[cluster:vars]
cluster_collect_profiler_root=/data/prof
"""


def test_an_ansible_inventory_in_ini_is_read(tmp_path: Path) -> None:
    inventory = load(tmp_path / "hosts", INI)
    assert [(spec.address, spec.port, spec.user, spec.profiler_root) for spec in inventory.specs] == [
        ("lone", 2222, None, "/prof"),
        ("node01", None, "trainer", "/data/prof"),
        ("node02", None, "trainer", "/data/prof"),
        ("10.0.0.9", None, "the trainer", "/data/prof"),
    ]
    assert set(inventory.groups["cluster"]) == {"node01", "node02", "10.0.0.9"}


def test_a_line_of_ini_that_is_none_is_named_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="hosts:2: not NAME=VALUE: 'b'"):
        load(tmp_path / "hosts", "[group]\na b\n")


def test_what_ansible_inventory_lists_is_read(tmp_path: Path) -> None:
    listing = {
        "_meta": {"hostvars": {"a": {"ansible_host": "10.0.0.1", "ansible_port": 22}, "b": {}}},
        "all": {"children": ["ungrouped", "rack1"]},
        "rack1": {"hosts": ["a", "b"]},
    }
    inventory = load(tmp_path / "hosts.json", json.dumps(listing))
    assert [(spec.address, spec.port) for spec in inventory.specs] == [("10.0.0.1", 22), ("b", None)]
    assert inventory.groups["rack1"] == ("10.0.0.1", "b")


def test_a_plain_list_of_hosts_is_an_inventory(tmp_path: Path) -> None:
    inventory = load(tmp_path / "hostfile", "node[01-02] slots=8\n# comment\nme@10.0.0.9:2222\n")
    assert [(spec.address, spec.port, spec.user) for spec in inventory.specs] == [
        ("node01", None, None),
        ("node02", None, None),
        ("10.0.0.9", 2222, "me"),
    ]


@pytest.mark.parametrize("is_of_service", [False, True])
def test_the_rank_table_itself_is_an_inventory(tmp_path: Path, *, is_of_service: bool) -> None:
    device = {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"}
    server = {"server_id": "10.0.0.1", "server_ip": "10.0.0.1", "device": [device]}
    servers: dict[str, object] = {"server_list": [server]}
    if is_of_service:
        servers = {"server_group_list": [{"group_id": "0", "server_count": "1", **servers}]}
    table = {"version": "1.0", "status": "completed", **servers}
    inventory = load(tmp_path / "hccl.json", json.dumps(table))
    assert [spec.address for spec in inventory.specs] == ["10.0.0.1"]
    assert inventory.rank_table == tmp_path / "hccl.json"


def test_settings_of_ansible_that_are_not_honoured_are_named_with_their_line(tmp_path: Path) -> None:
    text = (
        "[all:vars]\nansible_become_password=s3cret\n"
        "ansible_ssh_common_args=-o ProxyCommand='ssh -W %h:%p gate' -o StrictHostKeyChecking=no\n"
        "[rack]\na ansible_password=s3cret\nb\n[all:children]\nrack\n"
    )
    warnings = load(tmp_path / "hosts", text).warnings
    assert [warning.partition(" is not honoured")[0].rpartition("/")[2] for warning in warnings] == [
        "hosts:2: ansible_become_password",
        "hosts:3: ProxyCommand in ansible_ssh_common_args",
        "hosts:3: StrictHostKeyChecking in ansible_ssh_common_args",
        "hosts:5: ansible_password",
    ]
    assert "s3cret" not in str(warnings)


@pytest.mark.parametrize("spelling", ["true", "yes", "True", "1"])
def test_become_of_ansible_is_honoured(tmp_path: Path, spelling: str) -> None:
    text = (
        f"[all:vars]\nansible_become={spelling}\ncluster_collect_profiler_root=/prof\n"
        "[rack]\na ansible_become_user=trainer\nb\nc ansible_become=no\n"
    )
    inventory = load(tmp_path / "hosts", text)
    assert [(spec.become, spec.become_user) for spec in inventory.specs] == [
        ("sudo", "trainer"),
        ("sudo", None),
        (None, None),
    ]
    assert inventory.warnings == ()


def test_variables_of_all_are_those_of_every_group(tmp_path: Path) -> None:
    ini = "[all:vars]\nansible_user=trainer\n[rack]\na\n"
    yaml = "all: {vars: {ansible_user: trainer}}\nrack: {hosts: {a: }}\n"
    for text in (ini, yaml):
        assert [spec.user for spec in load(tmp_path / "hosts", text).specs] == ["trainer"], text


def test_a_way_to_become_that_is_not_sudo_is_an_error(tmp_path: Path) -> None:
    text = "a ansible_become=yes ansible_become_method=su cluster_collect_profiler_root=/p\n"
    with pytest.raises(InputError, match=r"hosts:1: 'become' is 'su' \(sudo is the one way there is"):
        load(tmp_path / "hosts", text)
