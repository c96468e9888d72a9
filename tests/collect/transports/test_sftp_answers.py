"""Answers of an SFTP server that hold less than was asked for."""

from __future__ import annotations

from pathlib import Path

import paramiko

from tests.collect.helpers import BOTH, FULL, collected, make_capture
from tests.collect.paramiko_server import Files, ParamikoServer, spec_of


class Sparing(paramiko.SFTPHandle):
    def read(self, offset: int, length: int) -> bytes | int:
        return super().read(offset, min(length, 5000))


class SparingFiles(Files):
    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle | int:
        handle = super().open(path, flags, attr)
        if isinstance(handle, paramiko.SFTPHandle):
            handle.__class__ = Sparing
        return handle


@BOTH
def test_a_server_that_sends_less_than_it_is_asked_for_costs_no_byte(
    tmp_path: Path, keys: tuple[Path, Path], transport: str
) -> None:
    capture = make_capture(tmp_path / "prof", size_bytes=100_000)
    authorized = Path(f"{keys[1]}.pub").read_text()
    with ParamikoServer(keys[0], authorized_keys=authorized, execute=None, files=SparingFiles) as server:
        spec = spec_of(server, keys, tmp_path / "prof", transport=transport)
        (outcome,) = collected(spec, tmp_path / "run", FULL).hosts
    assert outcome.state == "complete"
    sent = capture / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    assert [one.read_bytes() for one in (tmp_path / "run").rglob(sent.name)] == [sent.read_bytes()]
