"""Hosts as people have them: closed directories, talkative shells, roots that are a little wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from cluster_collect.entries import Allowance
from cluster_collect.faults import NoProfilerRootError
from cluster_collect.remote.listing import ListingReader
from cluster_run.errors import InputError
from cluster_run.manifest import read_manifest
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, OneHost, local_host
from tests.collect.inventory.helpers import load, native
from tests.collect.liar import TOOLS, Liar, entry, met, nothing, sending

pytestmark = pytest.mark.slow  # many servers are started

SFTP = "/usr/lib/openssh/sftp-server"


def test_a_root_inside_of_a_capture_is_told_with_its_parent(host: OneHost) -> None:
    inside = next(host.root.rglob("device_0"))
    outcome = host.having(profiler_root=str(inside)).collect()
    assert outcome.failure == "no-data"
    assert outcome.advice == f"use its parent as profiler_root: {host.root}"


def test_a_root_without_captures_is_told_with_what_is_there(host: OneHost) -> None:
    shutil.rmtree(host.root)
    (host.root / "wandb").mkdir(parents=True)
    (host.root / "wandb" / "a.txt").write_text("a")
    (host.root / "notes.md").write_text("b")
    outcome = host.collect()
    assert outcome.failure == "no-data"
    assert outcome.reason.endswith("; there is notes.md, wandb")


def test_a_wrong_root_is_told_with_what_stands_above_it(host: OneHost) -> None:
    outcome = host.having(profiler_root=f"{host.root}/profile/deep").collect()
    assert outcome.failure == "no-profiler-root"
    (capture,) = host.root.iterdir()
    assert outcome.reason.endswith(f"there is no such directory; {host.root} holds {capture.name}")


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
            complaints = b"\n".join(
                b"find: './%b_ascend_pt': Permission denied" % name for name in (b"a", b"b")
            )
            channel.sendall(TOOLS + b"root /prof\0listing\0end 1 %b\0" % complaints)

    outcome = met(tmp_path, keys, Closed(b"", nothing))
    assert outcome.failure == "listing"
    assert outcome.reason == "not everything could be listed: './a_ascend_pt': Permission denied (1 more)"
    assert "become: sudo" in outcome.advice


@BOTH
def test_what_spoils_the_sftp_of_a_host_is_quoted(start: Start, transport: str) -> None:
    host = start({"ForceCommand": f"echo Welcome to the cluster; exec {SFTP}"}, transport=transport)
    outcome = host.collect(replace(FULL, n_attempts=1, listing_deadline_s=10.0))
    assert outcome.failure == "no-shell"
    assert "Welcome to the cluster" in outcome.reason
    assert "start-up files" in outcome.advice


def test_a_start_up_file_that_swallows_what_we_send_is_thought_of(start: Start) -> None:
    """`exec zsh` in .bashrc: the new shell waits for input, and knows nothing of our command."""
    host = start({"ForceCommand": "exec cat >/dev/null"})
    outcome = host.collect(replace(FULL, n_attempts=1, listing_deadline_s=2.0))
    assert outcome.failure == "stalled"
    assert outcome.reason == "no answer for 2 s while its login shell starts our program"
    assert "starts another shell" in outcome.advice


@BOTH
def test_no_jump_host_is_blamed_where_there_is_none(start: Start, tmp_path: Path, transport: str) -> None:
    """sshd ends the login of a user whose new root others could write to."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    settings = {"ForceCommand": "internal-sftp", "ChrootDirectory": str(tmp_path / "open")}
    host = start(settings, transport=transport).having(profiler_root="/prof")
    outcome = host.collect(replace(FULL, n_attempts=1))
    assert outcome.state == "failed"
    assert "jump" not in outcome.reason


def columns_of(name: str, content: bytes) -> Liar:
    """A host that sends this as the columns of one file."""
    listing = b"f 90000 1700000000.5 a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json\0"
    listing += b"f 4 1700000000.5 a_ascend_pt/profiler_info_0.json\0"
    return Liar(listing, sending(b"columns 1\n", entry(f"./{name}.columns", content), listing=listing))


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
    root: Path, tmp_path: Path, key: str, value: object
) -> None:
    host = local_host(root, tmp_path / "run")
    host.collect_all()
    manifest = host.run / "manifest.json"
    document = json.loads(manifest.read_text())
    document["hosts"][0]["files"][0][key] = value
    manifest.write_text(json.dumps(document))
    with pytest.raises(InputError, match="not a readable manifest"):
        read_manifest(manifest)
    with pytest.raises(InputError, match="says what is already there"):
        host.collect()


def test_the_public_half_of_a_key_stands_for_the_private_one(tmp_path: Path) -> None:
    (tmp_path / "mykey").write_text("private")
    (tmp_path / "mykey.pub").write_text("public")
    (spec,) = load(tmp_path, native("- address: a", "profiler_root: /p, identity_file: mykey.pub")).specs
    assert spec.identity_file == str(tmp_path / "mykey")


def test_one_port_of_one_address_is_one_host(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"twice|same directory"):
        load(tmp_path, native("- {address: a, port: 2201}\n- {address: a, port: 2201}"))
