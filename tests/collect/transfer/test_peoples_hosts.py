"""Hosts as people have them: closed directories, talkative shells, roots that are a little wrong."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from cluster_collect.entries import Allowance
from cluster_collect.faults import NoProfilerRootError
from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_collect.remote.listing import ListingReader
from cluster_run.errors import InputError
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab
from tests.collect.helpers import (
    BOTH,
    FULL,
    collected,
    host_tree,
    make_capture,
    only_host,
    outcome_for,
    spec_for,
    tree,
)
from tests.collect.liar import TOOLS, Liar, ending, entry, met

pytestmark = pytest.mark.slow  # many servers are started

SFTP = "/usr/lib/openssh/sftp-server"


def test_a_root_inside_of_a_capture_is_told_with_its_parent(own_lab: SshLab, tmp_path: Path) -> None:
    capture = make_capture(tmp_path / "host")
    server = own_lab.start("127.0.0.2")
    outcome = outcome_for(spec_for(own_lab, server, capture / "PROF_000001_1_A" / "device_0"), tmp_path, FULL)
    assert outcome.failure == "no-data"
    assert outcome.advice == f"use its parent as profiler_root: {capture.parent}"


def test_a_root_without_captures_is_told_with_what_is_there(own_lab: SshLab, tmp_path: Path) -> None:
    (tmp_path / "host" / "wandb").mkdir(parents=True)
    (tmp_path / "host" / "wandb" / "a.txt").write_text("a")
    (tmp_path / "host" / "notes.md").write_text("b")
    server = own_lab.start("127.0.0.2")
    outcome = outcome_for(spec_for(own_lab, server, tmp_path / "host"), tmp_path, FULL)
    assert outcome.failure == "no-data"
    assert outcome.reason.endswith("; there is notes.md, wandb")


def test_a_wrong_root_is_told_with_what_stands_above_it(own_lab: SshLab, tmp_path: Path) -> None:
    make_capture(tmp_path / "host" / "profiles")
    server = own_lab.start("127.0.0.2")
    outcome = outcome_for(spec_for(own_lab, server, tmp_path / "host" / "profile" / "deep"), tmp_path, FULL)
    assert outcome.failure == "no-profiler-root"
    assert outcome.reason.endswith(f"there is no such directory; {tmp_path / 'host'} holds profiles")


def test_a_root_that_may_not_be_read_is_told_as_that() -> None:
    reader = ListingReader(Allowance(5))
    reader.feed(b"above /home/summary\0there \0missing\0")
    with pytest.raises(NoProfilerRootError) as refused:
        reader.require_root("/home/summary")
    assert refused.value.message.endswith("this user may not read it")
    assert "become: sudo" in refused.value.advice


def test_captures_that_only_root_can_read_are_no_missing_data(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    class Closed(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            for name in (b"a_ascend_pt", b"b_ascend_pt"):
                channel.sendall_stderr(b"find: './%b': Permission denied\n" % name)
            channel.sendall(TOOLS + b"root /prof\0listing\0end 1\0")

    outcome = met(tmp_path, keys, Closed(b"", lambda channel, marker: None))
    assert outcome.failure == "listing"
    assert outcome.reason == "not everything could be listed: './a_ascend_pt': Permission denied (1 more)"
    assert "become: sudo" in outcome.advice


@BOTH
def test_what_spoils_the_sftp_of_a_host_is_quoted(own_lab: SshLab, tmp_path: Path, transport: str) -> None:
    make_capture(tmp_path / "host")
    noisy = {"ForceCommand": f"echo Welcome to the cluster; exec {SFTP}"}
    server = own_lab.start("127.0.0.2", settings=noisy)
    options = replace(FULL, n_attempts=1, listing_deadline_s=10.0)
    outcome = outcome_for(
        spec_for(own_lab, server, tmp_path / "host", transport=transport), tmp_path, options
    )
    assert outcome.failure == "no-shell"
    assert "Welcome to the cluster" in outcome.reason
    assert "start-up files" in outcome.advice


@BOTH
def test_a_name_that_is_not_utf8_costs_nothing_beside_it(
    own_lab: SshLab, tmp_path: Path, transport: str
) -> None:
    capture = make_capture(tmp_path / "host")
    with open(os.fsencode(capture / "ASCEND_PROFILER_OUTPUT") + b"/bad\xff.csv", "wb") as stream:
        stream.write(b"content")
    server = own_lab.start("127.0.0.2", settings={"ForceCommand": SFTP})
    outcome = outcome_for(spec_for(own_lab, server, tmp_path / "host", transport=transport), tmp_path, FULL)
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@BOTH
def test_no_jump_host_is_blamed_where_there_is_none(own_lab: SshLab, tmp_path: Path, transport: str) -> None:
    """sshd ends the login of a user whose new root others could write to."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    server = own_lab.start(
        "127.0.0.2", settings={"ForceCommand": "internal-sftp", "ChrootDirectory": str(tmp_path / "open")}
    )
    options = replace(FULL, n_attempts=1)
    outcome = outcome_for(spec_for(own_lab, server, "/prof", transport=transport), tmp_path, options)
    assert outcome.state == "failed"
    assert "jump" not in outcome.reason


def columns_of(name: str, content: bytes) -> Liar:
    """A host that sends this as the columns of one file."""
    listing = b"f 90000 1700000000.5 a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json\0"
    listing += b"f 4 1700000000.5 a_ascend_pt/profiler_info_0.json\0"

    class Columns(Liar):
        def __call__(self, command: str, channel: paramiko.Channel) -> int:
            return super().__call__(command, channel)

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(b"columns 1\n" + entry(f"./{name}.columns", content))
        channel.sendall(ending(marker, listing))

    return Columns(listing, fetch)


@pytest.mark.parametrize("size_bytes", [7, 300_000])
@pytest.mark.parametrize("name", ["ASCEND_PROFILER_OUTPUT/communication.json", "profiler_info_0.json"])
def test_what_comes_as_columns_and_is_none_is_not_kept(
    tmp_path: Path, keys: tuple[Path, Path], name: str, size_bytes: int
) -> None:
    options = replace(FULL, what=("columns",), columns_as_root=True)
    outcome = met(tmp_path, keys, columns_of(f"a_ascend_pt/{name}", b"x" * size_bytes), options=options)
    assert outcome.state in ("failed", "partial")
    refused = [file for file in outcome.files if "as its columns is none" in file.reason]
    assert [file.source for file in refused] == [f"a_ascend_pt/{name}"]
    assert not list((tmp_path / "run").rglob("*.columns"))


@pytest.mark.parametrize("value", ["a\0b", None, 7, ["a"]])
@pytest.mark.parametrize("key", ["path", "source", "sha256"])
def test_a_manifest_that_was_tampered_with_is_one_clear_error(
    own_lab: SshLab, tmp_path: Path, key: str, value: object
) -> None:
    make_capture(tmp_path / "host")
    server = own_lab.start("127.0.0.2")
    spec = spec_for(own_lab, server, tmp_path / "host")
    assert only_host(collected(spec, tmp_path / "run", FULL)).state == "complete"
    manifest = tmp_path / "run" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["hosts"][0]["files"][0][key] = value
    manifest.write_text(json.dumps(document))
    with pytest.raises(InputError, match="not a readable manifest"):
        read_manifest(manifest)
    with pytest.raises(InputError, match="says what is already there"):
        collected(spec, tmp_path / "run", FULL)


@pytest.fixture
def key_pair(tmp_path: Path) -> Path:
    (tmp_path / "mykey").write_text("private")
    (tmp_path / "mykey.pub").write_text("public")
    return tmp_path / "mykey"


def test_the_public_half_of_a_key_stands_for_the_private_one(key_pair: Path, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(
        f"version: 1\ndefaults: {{profiler_root: /p, identity_file: {key_pair}.pub}}\nhosts:\n- address: a\n"
    )
    (spec,) = load_inventory(InventoryRequest(inventory, None, None, {}), {}).specs
    assert spec.identity_file == str(key_pair)


def test_two_ports_of_one_address_are_two_hosts_and_one_port_is_one(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    begin = "version: 1\ndefaults: {profiler_root: /p}\nhosts:\n"
    inventory.write_text(begin + "- {address: a, port: 2201}\n- {address: a, port: 2202}\n- {address: a}\n")
    specs = load_inventory(InventoryRequest(inventory, None, None, {}), {}).specs
    assert len({spec.server_id for spec in specs}) == 3
    inventory.write_text(begin + "- {address: a, port: 2201}\n- {address: a, port: 2201}\n")
    with pytest.raises(InputError, match=r"twice|same directory"):
        load_inventory(InventoryRequest(inventory, None, None, {}), {})
