"""Hosts on the command line, and the defaults that go with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_collect.spec import HostSpec
from cluster_run.errors import InputError, UsageError
from tests.collect.inventory.helpers import load, native


def listed(hosts: str, **defaults: str | int) -> tuple[HostSpec, ...]:
    request = InventoryRequest(hosts=hosts, defaults={"profiler_root": "/p", **defaults})
    return load_inventory(request, {}).specs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("a", None, None)),
        ("root@a", ("a", "root", None)),
        ("root@a:2222", ("a", "root", 2222)),
        ("a:22", ("a", None, 22)),
        ("[fe80::1]:22", ("fe80::1", None, 22)),
        ("root@[fe80::1]:22", ("fe80::1", "root", 22)),
        ("fe80::1", ("fe80::1", None, None)),
        ("n[7]:22", ("n7", None, 22)),
        ("me@corp@n7", ("n7", "me@corp", None)),
    ],
)
def test_a_part_may_have_a_user_and_a_port(text: str, expected: tuple[str, str | None, int | None]) -> None:
    (spec,) = listed(text)
    assert (spec.address, spec.user, spec.port) == expected


def test_operators_work_over_the_whole_list() -> None:
    assert [spec.address for spec in listed("n[1-4]!n[2-3]")] == ["n1", "n4"]


def test_a_file_of_hosts_is_read_past_comments_and_slots(tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("# nodes\nnode1 slots=8\n\nroot@node[2-3]:2222  # spare\n")
    specs = listed(f"^{path}")
    assert [(spec.address, spec.user, spec.port) for spec in specs] == [
        ("node1", None, None),
        ("node2", "root", 2222),
        ("node3", "root", 2222),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n1,,n2", "--hosts: not a list of hosts"),
        ("", "--hosts: not a list of hosts"),
        ("n[1-", r"--hosts: not a list of hosts: 'n\[1-'"),
        ("n1,n1", "--hosts: host 'n1' is listed twice"),
        ("a b", "--hosts: not a host name or address: 'a b'"),
        ("a:" + "9" * 5000, "--hosts: not a host name or address: 'a:9"),
        ("n[1-99999999]", "--hosts: too many hosts"),
        ("a:99999", "--hosts: 'port' is 99999"),
    ],
)
def test_a_mistake_is_named_without_a_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        listed(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nohosts: the list of hosts cannot be read"):
        listed(f"^{tmp_path}/nohosts")


def test_an_inventory_gives_the_defaults_for_hosts_of_the_command_line(tmp_path: Path) -> None:
    text = native("- address: other", "profiler_root: /prof, user: trainer")
    specs = load(tmp_path, text, hosts="n[1-2]").specs
    assert [(spec.host, spec.address, spec.user, spec.profiler_root) for spec in specs] == [
        ("1", "n1", "trainer", "/prof"),
        ("2", "n2", "trainer", "/prof"),
    ]


def test_the_command_line_wins_over_defaults_and_a_host_wins_over_both(tmp_path: Path) -> None:
    text = native("- address: a\n- address: b\n  user: own", "profiler_root: /prof, user: trainer")
    specs = load(tmp_path, text, defaults={"user": "given", "port": 2222}).specs
    assert [(spec.user, spec.port) for spec in specs] == [("given", 2222), ("own", 2222)]


def test_an_unknown_key_of_the_command_line_is_named() -> None:
    with pytest.raises(UsageError, match=r"--set: unknown key 'jmp' of a host .did you mean 'jump'"):
        listed("a", jmp="x")


def test_what_the_inventory_says_of_a_host_is_not_lost_unsaid(tmp_path: Path) -> None:
    text = native("- {address: 'n[1-3]', port: 2200}\n- address: m")
    assert load(tmp_path, text, hosts="m").warnings == ()
    (warning,) = load(tmp_path, text, hosts="n[2-3],m").warnings
    assert "hosts.yaml: n[2-3] stands there with more than its address" in warning
    assert "--limit" in warning
