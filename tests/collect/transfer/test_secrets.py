"""No secret shows anywhere: process arguments, logs, manifest, errors, tracebacks."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from cluster_run.ids import HostId
from demo.sshd import make_key
from tests.collect.helpers import BOTH, FULL, QUICK, OneHost, Recorder, collected, only_host
from tests.collect.paramiko_server import ParamikoServer, spec_of

pytestmark = pytest.mark.slow  # many servers are started

PASSWORD = "pa55word-that-nobody-may-see"
PASSPHRASE = "pa55phrase-that-nobody-may-see"


def every_command_line() -> str:
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines.append((entry / "cmdline").read_bytes().decode(errors="replace"))
                lines.append((entry / "environ").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return "\n".join(lines)


class Spy(Recorder):
    """Reads all command lines and environments while files arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = ""

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        super().file_stored(host, path, size_bytes)
        self.seen += every_command_line()

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        super().plan_known(host, n_files, n_bytes)
        self.seen += every_command_line()


@BOTH
@pytest.mark.parametrize("given", [PASSWORD, PASSWORD + "-wrong"], ids=["right", "wrong"])
def test_a_password_never_shows(
    root: Path,
    keys: tuple[Path, Path],
    tmp_path: Path,
    transport: str,
    given: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    spy = Spy()
    with ParamikoServer(keys[0], password=PASSWORD) as server:
        asked = {"identity_file": None, "password": given, "transport": transport}
        spec = spec_of(server, keys, root, prepare="env; echo prepared", **asked)
        outcome = only_host(collected(spec, tmp_path / "run", FULL, spy))
    assert (outcome.state == "complete") == (given == PASSWORD)
    assert server.n_password_tries == 1
    written = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    captured = capfd.readouterr()
    places = (repr(spec), repr(outcome), repr(spy), repr(written), spy.seen, caplog.text, *captured)
    for place in places:
        assert "pa55" not in place


@BOTH
def test_a_passphrase_never_shows_not_even_when_it_is_wrong(
    host: OneHost, tmp_path: Path, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = make_key(tmp_path / "user", passphrase=PASSPHRASE)
    for given in (PASSPHRASE, PASSPHRASE + "-wrong"):
        one = host.having(transport=transport, identity_file=str(key), passphrase=given)
        outcome = one.collect(QUICK)
        assert outcome.state == "failed"
        assert "pa55" not in repr(one) + repr(outcome) + caplog.text


def test_a_traceback_from_anywhere_in_a_login_holds_no_secret(host: OneHost) -> None:
    """A bug of ours in the middle of a login prints a traceback, and that must be harmless too."""
    spec = host.having(password=PASSWORD).spec

    class Broken(Recorder):
        def host_started(self, host: HostId) -> None:
            raise RuntimeError(f"a bug, with the host at hand: {spec!r}")

    with pytest.raises(RuntimeError) as caught:
        collected(spec, host.run, QUICK, Broken())
    text = "".join(traceback.format_exception(caught.value))
    assert "a bug" in text
    assert "pa55" not in text
