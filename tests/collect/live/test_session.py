"""A host that takes the login and then nothing more is lost, and holds up no other."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import asyncssh
import pytest

from cluster_collect.faults import HostError, NoShellError, StalledError
from cluster_collect.live.outcome import Lost, not_captured
from cluster_collect.live.session import opened
from cluster_collect.live.sessions import Sessions
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transports.dialers import Dialers
from cluster_run.ids import HostId, ServerId
from cluster_run.said.chinese import translated
from demo.sshd import SshLab
from tests.collect.helpers import spec_for
from tests.needed import need_sshd


def test_who_is_waited_for_is_said_with_what_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_collect.live.sessions._SAY_S", 0.05)
    said: list[str] = []
    sessions = Sessions({HostId("1"): "a", HostId("2"): "b"}, None, said.append)

    async def parse(host: HostId) -> None:
        await asyncio.sleep(0.2 * (host == "2"))

    asyncio.run(sessions.each("unparsed", parse, [HostId("1"), HostId("2")]))
    assert set(said) == {"1 of 2 hosts parsed, waiting for b"}
    assert translated(said[0], "zh") == "2 台主机中 1 台已解析，等待 b"
    collecting = "0 of 2 hosts done, 0 of 64 files, 0 B of 1.1 MB, waiting for b"
    assert translated(collecting, "zh") == "2 台主机中已完成 0 台，文件 0/64，0 B/1.1 MB，等待 b"


def test_who_is_lost_without_advice_leaves_the_advice_of_a_quorum_alone() -> None:
    names = {HostId("1"): "a", HostId("2"): "b"}
    error = not_captured({HostId("1"): Lost("stray", "its step is far off")}, names, None)
    assert str(error) == (
        "nothing was captured, all hosts are required: a: its step is far off "
        "(--require quorum N goes on without some)"
    )


def test_thousands_of_lost_hosts_are_told_in_few_words() -> None:
    names = {HostId(str(number)): f"node{number:04d}" for number in range(3000)}
    one = not_captured(dict.fromkeys(names, Lost("unreachable", "no route", "ask")), names, 8)
    assert one.message == "nothing was captured, 8 hosts are required: node[0000-2999]: no route"
    each = {host: Lost("no_step", f"rank {host} is silent", f"look at /{host}") for host in names}
    many = not_captured(each, names, 8)
    assert many.message.endswith("; node0004: rank 4 is silent; and 2995 more hosts")
    assert many.advice.endswith("/4")


def test_a_quorum_of_more_hosts_than_there_are_is_named() -> None:
    error = not_captured({}, {HostId("1"): "a"}, 4)
    assert str(error) == "nothing was captured, 4 hosts are required: the inventory has 1"


class Hangs(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return False

    async def session_requested(self) -> bool:
        await asyncio.sleep(3600)
        return False


def test_a_host_that_never_starts_our_program_is_lost_after_the_time_for_an_answer(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def scenario() -> None:
        async with await asyncssh.create_server(Hangs, "127.0.0.1", 0, server_host_keys=[key]) as server:
            port = server.get_port()
            known = f"[127.0.0.1]:{port} {key.export_public_key().decode()}"
            (tmp_path / "known_hosts").write_text(known)
            spec = HostSpec(
                host=HostId("1"),
                server_id=ServerId("node0"),
                address="127.0.0.1",
                port=port,
                user="anybody",
                known_hosts=str(tmp_path / "known_hosts"),
                profiler_root="/",
                ssh_config=os.devnull,
            )
            dialers = Dialers(CollectOptions(), ProgressListener())
            with pytest.raises(StalledError, match="no answer for 1 s while starting our program"):
                await opened(spec, dialers.dial, 1.0).__aenter__()
            await dialers.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("command", "kind", "said"),
    [
        ("internal-sftp", NoShellError, "This service allows sftp connections only"),
        ("exec cat >/dev/null", StalledError, "while its login shell starts our program"),
        ('PATH={tools} exec sh -c "$SSH_ORIGINAL_COMMAND"', NoShellError, "no python3"),
    ],
)
def test_a_host_that_cannot_run_our_program_says_why(
    tmp_path: Path, command: str, kind: type[HostError], said: str
) -> None:
    need_sshd()
    (tmp_path / "tools").mkdir()
    for name in ("sh", "dd"):
        (tmp_path / "tools" / name).symlink_to(shutil.which(name) or "")

    async def scenario(lab: SshLab) -> None:
        server = lab.start("127.0.0.4", settings={"ForceCommand": command.format(tools=tmp_path / "tools")})
        dialers = Dialers(CollectOptions(), ProgressListener())
        try:
            with pytest.raises(kind, match=said):
                await opened(spec_for(lab, server, "/"), dialers.dial, 2.0).__aenter__()
        finally:
            await dialers.aclose()

    with SshLab(tmp_path / "lab") as lab:
        asyncio.run(scenario(lab))
