"""The collection of one host over a fake connection: what is tried again, what is not, and in which order."""

from __future__ import annotations

import asyncio
import errno
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cluster_collect.entries import Allowance, RemoteEntry
from cluster_collect.faults import (
    DiskFullError,
    HostError,
    HostileDataError,
    HostKeyError,
    LoginError,
    LostConnectionError,
    NoShellError,
    RemoteFailureError,
    StalledError,
    UnreachableError,
)
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import RunWriter
from cluster_collect.transfer.host import HostCollection, Shared
from cluster_collect.transfer.pool import collect, look
from cluster_collect.transfer.same_files import SameFiles
from cluster_collect.transports.bounds import Bounds
from cluster_collect.transports.dialers import Dialers
from cluster_collect.transports.protocol import Receive, RunningCommand
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome
from tests.collect.helpers import FULL, Recorder

FILES = {b"a_ascend_pt/one.json": b"1", b"a_ascend_pt/two.json": b"22", b"b/ignored": b"3"}


@dataclass
class FakeFiles:
    """A host in memory. Each read first takes an error from `trouble`, if there is one."""

    content: dict[bytes, bytes]
    trouble: list[Exception]

    async def real_path(self, path: bytes) -> bytes:
        return b"/root"

    async def scan(self, directory: bytes, allowance: Allowance) -> list[RemoteEntry]:
        below = directory.removeprefix(b"/root").lstrip(b"/")
        prefix = below + b"/" if below else b""
        names = {path[len(prefix) :].split(b"/")[0] for path in self.content if path.startswith(prefix)}
        return [self._entry(prefix + name, name) for name in sorted(names)]

    async def stat(self, path: bytes) -> RemoteEntry:
        return self._entry(path.removeprefix(b"/root/"), path)

    async def read(self, path: bytes, size_bytes: int, receive: Receive, begin: int = 0) -> None:
        await asyncio.sleep(0)
        if self.trouble and (error := self.trouble.pop(0)) is not None:
            raise error
        receive(self.content[path.removeprefix(b"/root/")][begin:])

    async def close(self) -> None:
        return

    def _entry(self, path: bytes, name: bytes) -> RemoteEntry:
        content = self.content.get(path)
        return RemoteEntry(name, "d" if content is None else "f", len(content or b""), 10**9)


@dataclass
class FakeDialer:
    """Hands out connections without a shell; each dial first takes an error from `refusals`."""

    refusals: Sequence[Exception] = ()
    trouble: Sequence[Exception] = ()
    n_dialled: int = 0
    n_open: int = 0
    files: FakeFiles = field(init=False)

    def __post_init__(self) -> None:
        self.refusals = list(self.refusals)
        self.files = FakeFiles(FILES, list(self.trouble))

    async def dial(self, spec: HostSpec) -> FakeDialer:
        self.n_dialled += 1
        if self.refusals:
            raise list.pop(self.refusals, 0)  # type: ignore[arg-type]
        self.n_open += 1
        return self

    async def start(self, command: str, receive: Receive) -> RunningCommand:
        raise NoShellError("no shell in memory")

    async def open_files(self) -> FakeFiles:
        return self.files

    async def close(self) -> None:
        self.n_open -= 1


OPTIONS = replace(FULL, n_attempts=3, backoff_first_s=0.001)


def outcome_of(
    dialer: FakeDialer, tmp_path: Path, options: CollectOptions = OPTIONS, watch: Recorder | None = None
) -> HostOutcome:
    run = tmp_path / "run"
    run.mkdir(exist_ok=True)

    async def work() -> HostOutcome:
        with Journal(run) as journal:
            shared = Shared(
                options=options,
                dial=dialer.dial,
                bounds=Bounds(5, 5, 5),
                writer=RunWriter(run, 0),
                journal=journal,
                watch=watch or Recorder(),
                cap=None,
                same_files=SameFiles({}),
                table=None,
                end_s=math.inf,
            )
            spec = HostSpec(HostId("1"), ServerId("s"), address="fake", profiler_root="/root")
            return await HostCollection(spec, shared).run()

    outcome = asyncio.run(work())
    assert dialer.n_open == 0
    return outcome


def test_a_healthy_host_needs_one_connection(tmp_path: Path) -> None:
    dialer = FakeDialer()
    outcome = outcome_of(dialer, tmp_path)
    assert (outcome.state, outcome.files.n_stored, dialer.n_dialled) == ("complete", 2, 1)


@pytest.mark.parametrize("error", [UnreachableError("x"), LostConnectionError("x"), StalledError("x")])
def test_passing_trouble_is_tried_again_until_it_works(tmp_path: Path, error: HostError) -> None:
    dialer = FakeDialer(refusals=[error, error])
    watch = Recorder()
    outcome = outcome_of(dialer, tmp_path, watch=watch)
    assert (outcome.state, dialer.n_dialled, watch.retries) == ("complete", 3, ["x", "x"])


@pytest.mark.parametrize("error", [UnreachableError("x", "advice"), StalledError("x", "advice")])
def test_it_is_given_up_after_so_many_attempts_and_the_advice_is_kept(
    tmp_path: Path, error: HostError
) -> None:
    dialer = FakeDialer(refusals=[error] * 9)
    outcome = outcome_of(dialer, tmp_path)
    assert (outcome.state, outcome.reason, outcome.advice) == ("failed", "x", "advice")
    assert dialer.n_dialled == 3


@pytest.mark.parametrize("error", [LoginError("x"), HostKeyError("x"), HostileDataError("x")])
def test_what_will_not_change_is_tried_once(tmp_path: Path, error: HostError) -> None:
    dialer = FakeDialer(refusals=[error])
    assert outcome_of(dialer, tmp_path).state == "failed"
    assert dialer.n_dialled == 1


def test_what_nobody_foresaw_costs_one_host_and_names_the_place_without_values(tmp_path: Path) -> None:
    dialer = FakeDialer(trouble=[ValueError("hunter2")])
    outcome = outcome_of(dialer, tmp_path)
    assert (outcome.state, outcome.failure, outcome.files.n_stored) == ("partial", "unexpected", 1)
    assert re.fullmatch(r"an unforeseen ValueError at test_fake\.py:\d+ in read", outcome.reason)
    assert "report" in outcome.advice
    assert dialer.n_dialled == 1


@pytest.mark.parametrize("error", [DiskFullError("full"), OSError(errno.ENOSPC, "no space")])
def test_what_is_wrong_with_this_machine_ends_the_collection(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(DiskFullError):
        outcome_of(FakeDialer(trouble=[error]), tmp_path)


def test_other_hosts_are_collected_and_asked_beside_one_with_an_unforeseen_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialers = {"1": FakeDialer(refusals=[KeyError("a"), KeyError("b")]), "2": FakeDialer()}
    monkeypatch.setattr(Dialers, "dial", lambda _, spec: dialers[spec.host].dial(spec))
    specs = [HostSpec(HostId(n), ServerId(f"s{n}"), address="fake", profiler_root="/root") for n in dialers]
    plans = asyncio.run(look(specs, OPTIONS, Recorder()))
    assert [(one.outcome.failure, len(one.files)) for one in plans] == [("unexpected", 0), ("", 2)]
    manifest = asyncio.run(collect(specs, tmp_path / "run", OPTIONS, None, Recorder()))
    assert [(one.failure, one.files.n_stored) for one in manifest.hosts] == [("unexpected", 0), ("", 2)]


def test_attempts_start_anew_when_a_file_has_come(tmp_path: Path) -> None:
    lost = LostConnectionError("x")
    dialer = FakeDialer(refusals=[lost, lost])
    dialer.files.trouble = [None, lost, lost, lost]  # type: ignore[list-item]
    outcome = outcome_of(dialer, tmp_path)
    assert (outcome.state, outcome.files.n_stored) == ("partial", 1)
    assert dialer.n_dialled == 5  # the third brought a file and counts as the first


def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    dialer = FakeDialer(trouble=[RemoteFailureError("Permission denied")])
    outcome = outcome_of(dialer, tmp_path)
    assert outcome.state == "partial"
    assert sorted((file.state, file.reason) for file in outcome.files) == [
        ("failed", "Permission denied"),
        ("stored", ""),
    ]
    assert dialer.n_dialled == 1
