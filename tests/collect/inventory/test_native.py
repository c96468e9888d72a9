"""The project's own inventory: what it means, and how each mistake is named."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from cluster_collect.inventory.keys import HOST_KEYS
from cluster_collect.inventory.load import InventoryRequest, limit, load_inventory
from cluster_collect.spec import HostSpec
from cluster_run.errors import ClusterError, InputError, UsageError
from tests.collect.inventory.helpers import load, native

CONTRACT = """\
version: 1
rank_table: hccl.json              # relative to this file; optional
output: run1                       # optional
defaults:
  user: trainer
  port: 22
  identity_file: id_ed25519
  known_hosts: ~/.ssh/known_hosts
  profiler_root: /home/summary     # where the host keeps profiler data
hosts:
  - address: node[01-04,07].cluster   # node sets expand
  - address: 10.0.0.9
    port: 2222
    server_id: 10.0.0.99           # the name in the rank table, where it is not the address
    profiler_root: /data/prof
    device_regex: device           # r1.x: one folder a device; optional
    output_dir: data               # r1.x: below the device folder; optional
    jump: bastion.example          # ProxyJump
    password_env: NODE_PASSWORD    # the variable's name, never the password itself
    prepare: python3 parse_offline.py /data/prof   # run on the host before the listing; optional
  - local: /mnt/shared/prof/node9  # a shared file system instead of SSH
    server_id: 10.0.0.10
"""


def test_the_contracts_example_means_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "id_ed25519").touch()
    inventory = load(tmp_path, CONTRACT, environment={"NODE_PASSWORD": "secret"})
    assert [spec.host for spec in inventory.specs] == list("1234567")
    assert [spec.server_id for spec in inventory.specs] == [
        *(f"node{number}.cluster" for number in ("01", "02", "03", "04", "07")),
        "10.0.0.99",
        "10.0.0.10",
    ]
    known_hosts = str(Path("~/.ssh/known_hosts").expanduser())
    key = str(tmp_path / "id_ed25519")
    assert inventory.specs[5] == HostSpec(
        host=inventory.specs[5].host,
        server_id=inventory.specs[5].server_id,
        address="10.0.0.9",
        port=2222,
        user="trainer",
        identity_file=key,
        known_hosts=known_hosts,
        profiler_root="/data/prof",
        device_regex="device",
        output_dir="data",
        jump="bastion.example",
        password="secret",
        prepare="python3 parse_offline.py /data/prof",
    )
    assert inventory.specs[0].port == 22
    assert inventory.specs[6].transport == "local"
    assert inventory.specs[6].local == "/mnt/shared/prof/node9"
    assert inventory.rank_table == tmp_path / "hccl.json"
    assert inventory.output == tmp_path / "run1"


def test_defaults_may_hold_every_key_of_a_host(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    for name, key in HOST_KEYS.items():
        value = f"'{key.like}'" if key.kind != "path" else "key"
        host = "server_id: s" if name in ("address", "local") else "address: a"
        host += "\n  become: sudo" if name == "become_user" else ""
        text = native(f"- {host}", f"profiler_root: /prof, {name}: {value}")
        if name == "profiler_root":
            text = native("- address: a", f"profiler_root: {value}")
        if name in ("address", "server_id"):
            text = text.replace("[01-04,07]", "").replace("[1-4,7]", "")
        environment = {"NODE_PASSWORD": "x", "KEY_PASSPHRASE": "x"}
        (spec,) = load(tmp_path, text, environment=environment).specs
        assert name != "local" or spec.local == key.like


def test_every_key_reaches_the_spec() -> None:
    # password_env and passphrase_env become values; bandwidth gets its unit.
    renamed = {
        "password_env": "password",
        "passphrase_env": "passphrase",
        "bandwidth": "bandwidth_bytes_per_s",
    }
    by_the_call = {"host", "captures", "device_ranks"}
    assert {renamed.get(name, name) for name in HOST_KEYS} | by_the_call == {
        field.name for field in fields(HostSpec)
    }


MISTAKES = [
    ("- adress: a", r"hosts.yaml:4: unknown key 'adress' of a host \(did you mean 'address'\?\)"),
    ("- address: a\n  prot: 22", r"hosts.yaml:5: unknown key 'prot' of a host \(did you mean 'port'\?\)"),
    (
        "- address: a\n  key: k",
        r"hosts.yaml:5: unknown key 'key' of a host \(did you mean 'identity_file'\?\)",
    ),
    ("- HostName: a", r"hosts.yaml:4: unknown key 'HostName' of a host \(did you mean 'address'\?\)"),
    ("- address: a\n  ssh_key: k", r"unknown key 'ssh_key' of a host \(did you mean 'identity_file'\?\)"),
    ("- address: a\n  ProxyJump: b", r"unknown key 'ProxyJump' of a host \(did you mean 'jump'\?\)"),
    ("- address: a\n  zzz: 22", r"hosts.yaml:5: unknown key 'zzz' of a host \(known keys: address, "),
    ("- address: a\n  port: 70000", r"hosts.yaml:5: 'port' is 70000 \(a port is 1 to 65535\)"),
    ("- address: a\n  port: yes", r"hosts.yaml:5: 'port' is yes/no"),
    ("- address: a\n  user:", r"hosts.yaml:5: 'user' is empty"),
    ("- address: a\n  user: ''", r"hosts.yaml:5: 'user' is empty"),
    ("- address: a\n  user: [b]", r"hosts.yaml:5: 'user' is a list"),
    ("- address: a\n  user: !vault x", r"hosts.yaml:5: 'user' is a !vault, text is wanted"),
    ("- address: a\n  password_env: hunter2!", r"hosts.yaml:5: 'password_env' is no name of a variable"),
    (
        "- address: a\n  transport: ssh",
        r"hosts.yaml:5: 'transport' is 'ssh' \(asyncssh or paramiko or srun\)",
    ),
    ("- address: a\n  become: su", r"hosts.yaml:5: 'become' is 'su' \(sudo is the one way there is\)"),
    ("- address: a\n  become_user: b", r"hosts.yaml:5: 'become_user' without 'become' \(add become: sudo\)"),
    ("- address: a\n  become: sudo\n  become_user: a b", r"hosts.yaml:6: not the name of a user: 'a b'"),
    ("- address: a\n  bandwidth: fast", r"hosts.yaml:5: 'bandwidth' is not a size \(write it like 50M"),
    ("- address: a\n  password: secret", r"hosts.yaml:5: unknown key 'password'.*password_env"),
    (
        "- address: a\n  user: b\n  user: c",
        r"hosts.yaml:6: key 'user' appears twice \(the first one is in line 5\)",
    ),
    (
        "- address: a\n- address: b\n- address: a",
        r"hosts.yaml:6: host 'a' is listed twice \(the first one is .*hosts.yaml:4\)",
    ),
    ("- address: n[1-3]\n- address: n2", r"hosts.yaml:5: host 'n2' is listed twice"),
    ("- address: n[1-2],n2", r"hosts.yaml:4: host 'n2' is listed twice"),
    ("- address: a\n- address: a\n  server_id: b", r"hosts.yaml:5: host 'b' reads the same directory of a"),
    ("- address: n[1-", r"hosts.yaml:4: not a list of hosts: 'n\[1-'"),
    ("- address: n[1-100000000]", r"hosts.yaml:4: too many hosts"),
    (
        "- address: trainer@a",
        r"hosts.yaml:4: not a host name or address: 'trainer@a' \(a user goes into 'user'",
    ),
    ("- address: a:2222", r"hosts.yaml:4: not a host name or address: 'a:2222' .*a port into 'port'"),
    ('- address: "[::1]:2222"', r"hosts.yaml:4: not a host name or address: .*a port into 'port'"),
    ("- address: a;reboot", r"hosts.yaml:4: not a host name or address"),
    ("- address: -oProxyCommand=x", r"hosts.yaml:4: not a host name or address"),
    ("- server_id: a", r"hosts.yaml:4: a host with neither 'address' nor 'local'"),
    ("- address: a\n  local: /b", r"hosts.yaml:4: a host with both 'address' and 'local'"),
    ("- local: /b", r"hosts.yaml:4: 'local' without 'server_id'"),
    (
        "- address: n[1-3]\n  server_id: 10.0.0.[1-2]",
        r"hosts.yaml:5: 'server_id' stands for 2 hosts, the entry for 3",
    ),
    ("- address: a\n  transport: local", r"hosts.yaml:5: 'transport: local' without 'local'"),
    ("- 12", r"hosts.yaml:4: not a host name or address: '12'"),
    ("- yes", r"hosts.yaml:4: a host is yes/no, a mapping"),
    ("- address: a\n  server_id: 'a b'", r"hosts.yaml:5: not a server id: 'a b'"),
]


@pytest.mark.parametrize(("hosts", "message"), MISTAKES)
def test_a_mistake_is_named_with_file_line_and_key(tmp_path: Path, hosts: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, native(hosts))


@pytest.mark.parametrize("name", HOST_KEYS)
@pytest.mark.parametrize("value", ["true", "No", "[a, b]", "{a: b}", "~", "''"])
def test_a_value_of_a_wrong_type_is_answered_with_one_that_its_key_takes(
    tmp_path: Path, name: str, value: str
) -> None:
    host = "- x: y" if name == "address" else "- address: a"
    line = host.replace("x: y", f"address: {value}") if name == "address" else f"{host}\n  {name}: {value}"
    with pytest.raises(InputError) as caught:
        load(tmp_path, native(line))
    assert caught.value.advice == f"write it like {HOST_KEYS[name].like}, or leave the key out"


def test_a_number_is_the_text_that_was_written(tmp_path: Path) -> None:
    """YAML reads them as 8, 1.1, a date and 1342."""
    text = native("- {address: a, server_id: 010, user: 1.10, output_dir: 2021-08-10, jump: 22:22}")
    (spec,) = load(tmp_path, text).specs
    assert (spec.server_id, spec.user, spec.output_dir, spec.jump) == ("010", "1.10", "2021-08-10", "22:22")
    json = '{"version": 1, "hosts": [{"address": "a", "port": "22", "user": 1.10, "profiler_root": "/p"}]}'
    (spec,) = load(tmp_path, json).specs
    assert (spec.port, spec.user) == (22, "1.10")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts: [a]", r"hosts.yaml:1: key 'version' is missing \(begin the inventory with 'version: 1'\)"),
        ("version: 2\nhosts: [a]", r"hosts.yaml:1: version 2 found, 1 wanted"),
        (
            "version: 1\nhost: [a]",
            r"hosts.yaml:2: unknown key 'host' of the inventory \(did you mean 'hosts'\?\)",
        ),
        ("version: 1\nuser: a", r"hosts.yaml:2: unknown key 'user' .*belongs below defaults or a host"),
        ("version: 1\nhosts: a", r"hosts.yaml:2: 'hosts' is text, a list is wanted"),
        ("version: 1\nhosts: []", r"hosts.yaml: no hosts"),
        ("version: 1\ndefaults: [a]", r"hosts.yaml:2: 'defaults' is a list"),
        (
            "version: 1\ndefaults: {usr: a}",
            r"hosts.yaml:2: unknown key 'usr' in defaults \(did you mean 'user'\?\)",
        ),
        ("version: 1\nhosts: [{address: a}]", r"hosts.yaml:2: no 'profiler_root' for a"),
        ("version: 1\n\thosts: [a]", r"hosts.yaml:2: not readable as YAML"),
        (
            "version: 1\ndefaults:\n  user\uff1aa\n  port: 2\nhosts: [a]",
            r"hosts.yaml:4: not readable as YAML: .*\(line 3 holds '\uff1a': type colons",
        ),
        (
            "version: 1\ndefaults:\n  user\uff1aa\nhosts: [a]",
            r"hosts.yaml:2: .*\(it holds '\uff1a': type colons",
        ),
        ("version: 1\nhosts: [a", r"not readable as YAML"),
        ("- a", r"hosts.yaml:1: the inventory is a list"),
        ("", r"hosts.yaml:1: the inventory is empty"),
        ("version: 1\n---\nversion: 1", r"not readable as YAML"),
        ("version: 1\ngroups: {r: n9}\ndefaults: {profiler_root: /p}\nhosts: [n1]", r"group 'r' names 'n9'"),
        ('{"version": 1, "version": 1}', r"key 'version' appears twice"),
        ('{"version": 1,', r"hosts.yaml:1: not readable as JSON"),
    ],
)
def test_a_mistake_at_the_top_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, text)


def test_json_is_an_inventory_too(tmp_path: Path) -> None:
    text = '{"version": 1, "defaults": {"profiler_root": "/p"}, "hosts": [{"address": "n[1-2]"}]}'
    assert [spec.address for spec in load(tmp_path, text).specs] == ["n1", "n2"]


@pytest.mark.slow
def test_aliases_that_multiply_are_stopped(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
    with pytest.raises(InputError, match="too large or nested too deeply"):
        load(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    "text", ["version: &a [*a]", "version: " + "[" * 1500, '{"version": ' + "[" * 100000]
)
def test_nesting_without_end_is_an_error_and_no_crash(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        load(tmp_path, text)


def test_a_missing_password_variable_is_named_with_the_way_out(tmp_path: Path) -> None:
    text = native("- address: a\n  password_env: NODE_PASSWORD")
    with pytest.raises(
        InputError, match=r"hosts.yaml:5: environment variable NODE_PASSWORD is not set.*export"
    ):
        load(tmp_path, text)


def test_no_password_shows_in_a_repr(tmp_path: Path) -> None:
    text = native("- address: a\n  password_env: P\n  passphrase_env: Q")
    inventory = load(tmp_path, text, environment={"P": "hunter2", "Q": "swordfish"})
    assert inventory.specs[0].password == "hunter2"
    assert inventory.specs[0].passphrase == "swordfish"
    assert "hunter2" not in repr(inventory)
    assert "swordfish" not in repr(inventory)


@pytest.mark.parametrize(
    "text",
    ["version: 1\nhosts: [{address: a, password: hunter2", "password: 'hunter2\nx: y", "hunter2: hunter2: x"],
)
def test_a_broken_file_is_never_quoted_in_the_message(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClusterError) as caught:
        load(tmp_path, text)
    assert "hunter2" not in str(caught.value)


def test_a_missing_key_file_is_found_before_any_connection(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hosts.yaml:5: 'identity_file' .*no_such_key does not exist"):
        load(tmp_path, native("- address: a\n  identity_file: no_such_key"))


def test_paths_are_relative_to_the_inventory_not_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "key").touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = "version: 1\nrank_table: t.json\noutput: ../out\nhosts:\n"
    text += "  - {local: prof, server_id: a}\n  - {address: b, profiler_root: /p, identity_file: key}\n"
    inventory = load(tmp_path, text)
    assert inventory.rank_table == tmp_path / "t.json"
    assert inventory.output == tmp_path / ".." / "out"
    assert inventory.specs[0].local == str(tmp_path / "prof")
    assert inventory.specs[1].identity_file == str(tmp_path / "key")


def test_directories_of_an_inventory_named_by_a_relative_path_are_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads them runs in another directory."""
    monkeypatch.chdir(tmp_path)
    (spec,) = load(Path(), native("- {local: prof, server_id: a}")).specs
    assert spec.local == str(tmp_path / "prof")


def test_local_directories_expand_with_their_server_ids(tmp_path: Path) -> None:
    specs = load(tmp_path, native("- local: /mnt/node[1-3]\n  server_id: 10.0.0.[1-3]")).specs
    assert [(spec.local, spec.server_id) for spec in specs] == [
        (f"/mnt/node{number}", f"10.0.0.{number}") for number in (1, 2, 3)
    ]


def test_a_host_with_its_own_place_does_not_inherit_the_other_one(tmp_path: Path) -> None:
    specs = load(tmp_path, native("- address: a\n- server_id: b", "profiler_root: /p, local: /mnt/b")).specs
    assert [(spec.address, spec.local) for spec in specs] == [("a", None), ("", "/mnt/b")]


GROUPED = (
    native("- address: n[1-4]\n- address: m\n  server_id: 10.0.0.9") + "groups:\n  left: n[1-2]\n  m: m\n"
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("n[2-3]", "23"),
        ("@left", "12"),
        ("10.0.0.9", "5"),
        ("m", "5"),
        ("@m,n1", "15"),
        ("*!@left", "345"),
        ("*!m", "1234"),
        ("*!10.0.0.9", "1234"),
        ("n*&@left", "12"),
    ],
)
def test_a_limit_keeps_the_numbers_of_the_whole_inventory(tmp_path: Path, text: str, numbers: str) -> None:
    limited = limit(load(tmp_path, GROUPED), text)
    assert "".join(spec.host for spec in limited.specs) == numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[4-5]", r"'n5' is no host of .*hosts.yaml \(did you mean 'n"),
        ("n1!n1", "leaves no host"),
        ("@x", "@left, @m"),
    ],
)
def test_a_limit_that_names_nothing_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        limit(load(tmp_path, GROUPED), text)


def test_a_missing_or_unreadable_inventory_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no.yaml: the inventory does not exist \(examples"):
        load_inventory(InventoryRequest(tmp_path / "no.yaml"), {})
    with pytest.raises(InputError, match=r": the inventory cannot be read: Is a directory$"):
        load_inventory(InventoryRequest(tmp_path), {})
    (tmp_path / "gbk.yaml").write_bytes(b"version: 1\n# \xd6\xd0\xce\xc4\n")
    with pytest.raises(InputError, match=r"gbk.yaml:2: not UTF-8 \(save it as UTF-8\)$"):
        load_inventory(InventoryRequest(tmp_path / "gbk.yaml"), {})
    with pytest.raises(UsageError, match="no hosts"):
        load_inventory(InventoryRequest(), {})


def test_the_profiler_root_may_name_the_host_and_variables_of_this_machine(tmp_path: Path) -> None:
    text = native("- address: node[1-2]", "profiler_root: '/data/%h/$SLURM_JOB_ID/${RUN}_100%%/$lower'")
    specs = load(tmp_path, text, environment={"SLURM_JOB_ID": "17", "RUN": "a b"}).specs
    assert [spec.profiler_root for spec in specs] == [
        "/data/node1/17/a b_100%/$lower",
        "/data/node2/17/a b_100%/$lower",
    ]
    with pytest.raises(InputError, match="names the environment variable SLURM_JOB_ID, which is not set"):
        load(tmp_path, text)


def test_containers_behind_one_address_are_hosts_that_differ_by_their_ports(tmp_path: Path) -> None:
    hosts = "- {address: a, port: 2201}\n- {address: a, port: 2202}\n- address: b"
    found = load(tmp_path, native(hosts)).specs
    assert [(one.host, one.server_id, one.address, one.port) for one in found] == [
        ("1", "a", "a", 2201),
        ("2", "a:2202", "a", 2202),
        ("3", "b", "b", None),
    ]
