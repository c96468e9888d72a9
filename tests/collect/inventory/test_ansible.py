"""Ansible inventories in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.inventory.load import limit
from cluster_run.errors import InputError
from tests.collect.inventory.helpers import load

INVENTORY = """\
all:
  vars:
    ansible_user: trainer
    ntp_servers: [a, b]
    deployed: 2024-05-01
    vaulted: !vault |
      $ANSIBLE_VAULT;1.1;AES256
    cluster_collect_profiler_root: /prof
  hosts:
    login:
      ansible_host: 10.0.0.1
  children:
    rack1:
      hosts:
        node[01:03]:
        big:
          ansible_port: 2222
          ansible_user: root
          cluster_collect_profiler_root: /big
          cluster_collect_server_id: 10.0.0.9
      vars:
        ansible_ssh_common_args: -o StrictHostKeyChecking=yes -o ProxyJump=bastion.example
        ansible_ssh_private_key_file: key
    empty:
    rack2:
      children:
        shelf:
          hosts:
            shared:
              ansible_connection: local
              cluster_collect_local: /mnt/shared
"""


def test_hosts_groups_ranges_and_variables_are_read(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    specs = {spec.server_id: spec for spec in load(tmp_path, INVENTORY).specs}
    assert list(specs) == ["10.0.0.1", "node01", "node02", "node03", "10.0.0.9", "shared"]
    node = specs["node02"]  # type: ignore[index]
    assert (node.address, node.user, node.port, node.profiler_root) == ("node02", "trainer", None, "/prof")
    assert (node.jump, node.identity_file) == ("bastion.example", str(tmp_path / "key"))
    big = specs["10.0.0.9"]  # type: ignore[index]
    assert (big.address, big.user, big.port, big.profiler_root) == ("big", "root", 2222, "/big")
    shared = specs["shared"]  # type: ignore[index]
    assert (shared.transport, shared.local, shared.address) == ("local", "/mnt/shared", "")


def test_its_groups_work_in_a_limit(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    inventory = load(tmp_path, INVENTORY)
    assert [spec.server_id for spec in limit(inventory, "@rack2").specs] == ["shared"]
    assert [spec.server_id for spec in limit(inventory, "@rack1!node*").specs] == ["10.0.0.9"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("n[1:3]", "n1 n2 n3"),
        ("n[08:11]", "n08 n09 n10 n11"),
        ("n[1:9:4]", "n1 n5 n9"),
        ("r[a:c]", "ra rb rc"),
        ("r[a:b]n[1:2]", "ran1 ran2 rbn1 rbn2"),
    ],
)
def test_ranges(tmp_path: Path, pattern: str, names: str) -> None:
    text = f"all:\n  vars: {{cluster_collect_profiler_root: /p}}\n  hosts: {{'{pattern}': }}\n"
    assert [spec.address for spec in load(tmp_path, text).specs] == names.split()


def host_with(variable: str) -> str:
    return f"all:\n  hosts:\n    a:\n      cluster_collect_profiler_root: /p\n      {variable}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            host_with("cluster_collect_usr: x"),
            r"hosts.yaml:5: unknown key 'usr' of host a \(did you mean 'user'",
        ),
        (host_with("ansible_port: '{{ port }}'"), r"hosts.yaml:5: ansible_port is a template"),
        (host_with("ansible_port: yes"), r"hosts.yaml:5: 'ansible_port' is yes/no.*write it like 2222"),
        (host_with("ansible_become: 5"), r"hosts.yaml:5: ansible_become is text, yes or no is wanted"),
        ("all:\n  hosts:\n    n[3:1]:\n", r"hosts.yaml:3: not a range: 'n\[3:1\]'"),
        ("all:\n  hosts:\n    n[1:999999999]:\n", r"hosts.yaml:3: .* stands for more than 65536"),
        ("all:\n  hosts:\n    n[1:9]m[1:9999]:\n", r"more than 65536 hosts"),
        ("all:\n  hosts: [a]\n", r"hosts.yaml:2: 'hosts' is a list"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, text)


def test_a_hosts_own_variable_wins_over_any_group(tmp_path: Path) -> None:
    text = (
        "all:\n  vars: {cluster_collect_profiler_root: /all}\n"
        "  children:\n"
        "    one: {hosts: {a: {ansible_user: own}}, vars: {ansible_user: one}}\n"
        "    two: {hosts: {a: , b: }, vars: {ansible_user: two}}\n"
    )
    assert [(spec.address, spec.user) for spec in load(tmp_path, text).specs] == [("a", "own"), ("b", "two")]


def test_merge_keys_are_understood(tmp_path: Path) -> None:
    text = (
        "all:\n  vars: &v {cluster_collect_profiler_root: /p, ansible_user: u}\n"
        "  hosts:\n    a:\n      <<: *v\n      ansible_user: mine\n"
    )
    (spec,) = load(tmp_path, text).specs
    assert (spec.user, spec.profiler_root) == ("mine", "/p")
