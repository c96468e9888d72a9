"""The r1.x account file: read only when private, its passwords never shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cluster_collect.inventory.account import refuse_public
from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_run.errors import ClusterError, InputError
from tests.collect.inventory.helpers import load

PASSWORD = 'p w"x'
ACCOUNT = json.dumps(
    {
        "rank_size": 16,
        "cluster": {
            "10.0.0.2": {"user": "root", "passwd": PASSWORD},
            "10.0.0.1": {"user": "trainer", "passwd": "other"},
        },
    },
    indent="\t",  # many of these files are indented with tabs, which YAML does not allow
)
ROOT = {"profiler_root": "/home/summary", "device_regex": "device", "output_dir": "data"}


def test_hosts_are_numbered_in_the_order_of_the_file(tmp_path: Path) -> None:
    inventory = load(tmp_path, ACCOUNT, name="account.json", defaults=ROOT)
    assert [(spec.host, spec.address, spec.server_id, spec.user) for spec in inventory.specs] == [
        ("1", "10.0.0.2", "10.0.0.2", "root"),
        ("2", "10.0.0.1", "10.0.0.1", "trainer"),
    ]
    assert [spec.password for spec in inventory.specs] == [PASSWORD, "other"]
    assert {(spec.device_regex, spec.output_dir) for spec in inventory.specs} == {("device", "data")}


def test_it_is_recognised_by_content_whatever_its_name(tmp_path: Path) -> None:
    assert len(load(tmp_path, ACCOUNT, name="hosts.yaml", defaults=ROOT).specs) == 2


def test_reading_one_warns_about_passwords_in_files(tmp_path: Path) -> None:
    (warning,) = load(tmp_path, ACCOUNT, name="account.json", defaults=ROOT).warnings
    assert "passwords in a file" in warning


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o610, 0o602])
def test_one_that_others_can_read_is_refused_with_the_command_that_helps(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "account.json"
    path.write_text(ACCOUNT)
    path.chmod(mode)
    with pytest.raises(InputError, match=f"open to others .mode 0{mode:o}. .chmod 600 {path}"):
        load_inventory(InventoryRequest(path, defaults=ROOT), {})


def test_one_of_another_owner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="belongs to another user"):
        refuse_public("account.json", 0o100600, owner=1234, reader=5678)
    if os.geteuid() == 0:
        path = tmp_path / "account.json"
        path.write_text(ACCOUNT)
        path.chmod(0o600)
        os.chown(path, 12345, -1)
        with pytest.raises(InputError, match="belongs to another user"):
            load_inventory(InventoryRequest(path, defaults=ROOT), {})


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (
            {"a": {"user": "u", "password": PASSWORD}},
            r"unknown key 'password' in the account of a .*'passwd'",
        ),
        ({"a": PASSWORD}, "the account of a is text, a mapping"),
        ({"a": {"user": "u", "passwd": True}}, "the passwd of a is yes/no"),
        ({}, "no hosts"),
    ],
)
def test_a_mistake_is_named_without_the_password(tmp_path: Path, cluster: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path, json.dumps({"cluster": cluster}), defaults=ROOT)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("cut", range(40, len(ACCOUNT) - 1, 7))
def test_a_truncated_file_never_shows_a_password(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ClusterError) as caught:
        load(tmp_path, ACCOUNT[:cut], name="account.json", defaults=ROOT)
    assert "p w" not in repr(caught.value.args)


def test_without_a_profiler_root_the_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no 'profiler_root' for 10.0.0.2 .*--profiler-root"):
        load(tmp_path, ACCOUNT, name="account.json")


def test_no_password_shows_in_a_repr(tmp_path: Path) -> None:
    assert "other" not in repr(load(tmp_path, ACCOUNT, name="account.json", defaults=ROOT))
