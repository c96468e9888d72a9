"""manifest.json: what was collected, from where, and how each host fared.

Schema history:
    cluster-run/1   first version
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cluster_run.errors import SchemaError, read_as
from cluster_run.files import json_of
from cluster_run.ids import HostId, ServerId

SCHEMA = "cluster-run/1"

#: `stored` whole and verified; `unstable` stored, but it changed while it was read;
#: `skipped` on purpose (a link, a device, an unsafe name); `failed` could not be fetched.
FileState = Literal["stored", "unstable", "skipped", "failed"]
#: `complete` all files stored; `partial` some; `failed` none, or the host was never reached.
HostState = Literal["complete", "partial", "failed"]
#: The lowest level: higher ones take more time, and hashes are half of the text.
_PACKING_LEVEL = 1


@dataclass(frozen=True, slots=True)  # there may be hundreds of thousands
class CollectedFile:
    """One file of one host. `path` is relative to the run directory, with `/` between its parts.

    `reduced_from_bytes` is the size on the host of a file whose columns lie here in its place, else None.
    """

    path: str
    source: str
    size_bytes: int
    mtime_ns: int
    sha256: str
    state: FileState
    reason: str = ""
    reduced_from_bytes: int | None = None


class FileList(Collection[CollectedFile]):
    """The files of one host, in the order of the manifest, and what is often asked of all of them.

    One that is `packed` holds the manifest's own lines, compressed: 60 bytes a file, a tenth of the values,
    which it makes anew each time it is gone through.
    """

    __slots__ = ("_files", "_lines", "_n", "n_columns", "n_stored", "not_stored", "stored_bytes")

    def __init__(self, files: Iterable[CollectedFile] = (), *, packed: bool = False) -> None:
        self._files = tuple(files)
        self._n = len(self._files)
        #: Those that are not plainly `stored`.
        self.not_stored = tuple(file for file in self._files if file.state != "stored")
        lacking = [file for file in self.not_stored if file.state != "unstable"]
        #: Number and size of the files that are in the run directory, and how many of all are columns.
        self.n_stored = self._n - len(lacking)
        lacking_bytes = sum(file.size_bytes for file in lacking)
        self.stored_bytes = sum(file.size_bytes for file in self._files) - lacking_bytes
        self.n_columns = sum(file.reduced_from_bytes is not None for file in self._files)
        self._lines = b""
        if packed and self._files:
            self._lines = zlib.compress(self.as_text().encode(), _PACKING_LEVEL)
            self._files = ()

    def as_text(self) -> str:
        """Return all files as JSON, one a line."""
        if self._lines:
            return zlib.decompress(self._lines).decode()
        return ",\n".join(json.dumps(file_document(file)) for file in self._files)

    def _all(self) -> tuple[CollectedFile, ...]:
        if not self._lines:
            return self._files
        return tuple(CollectedFile(**fields) for fields in json.loads(f"[{self.as_text()}]"))

    def __iter__(self) -> Iterator[CollectedFile]:
        yield from self._all()  # made when the first one is asked for

    def __len__(self) -> int:
        return self._n

    def __contains__(self, file: object) -> bool:
        return file in self._all()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileList) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash((self._n, self.stored_bytes))

    def __repr__(self) -> str:
        return f"FileList({list(self._all())!r})"


@dataclass(frozen=True)
class Chip:
    """One chip of a host. `device` is its logic id, as in rank tables; text is empty where nothing tells.

    `vdie` is the number that was burnt into it; a card's `serial` is that of all its chips. `physical` is the
    number that the driver has for it, which stays where another chip is gone; None where nothing tells.
    """

    device: int
    card: int = 0
    chip: int = 0
    vdie: str = ""
    serial: str = ""
    pcie: str = ""
    firmware: str = ""
    physical: int | None = None


@dataclass(frozen=True)
class Hardware:
    """Identity of a host that outlives ranks and addresses; fields that it did not report are empty."""

    name: str = ""
    serial: str = ""
    product: str = ""
    chips: tuple[Chip, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HostOutcome:
    """How collecting from one host ended; a failure is a value with a reason and an advice.

    `failure` is the reason for programs: one word of a fixed list, empty when the host is complete.
    `clock_offset_ms` is its clock minus ours, give or take `clock_uncertainty_ms`. `same_files_as` is the
    host that its files were fetched from, where both see one file system. `raw_because` is why a host
    that was asked for columns sent its files as they are; `n_over_limits` is how many came so because to
    read them takes more time or memory than it may.
    """

    host: HostId
    server_id: ServerId
    state: HostState
    files: FileList = field(default_factory=FileList)
    reason: str = ""
    advice: str = ""
    clock_offset_ms: float | None = None
    seconds: float = 0.0
    wire_bytes: int = 0
    failure: str = ""
    same_files_as: str = ""
    clock_uncertainty_ms: float | None = None
    raw_because: str = ""
    n_over_limits: int = 0
    #: The host's answer on its hardware, the fields of `Hardware`; empty without an answer.
    hardware: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """How the hosts of a collection were named, to reach them again. There is no secret in it.

    `inventory` is an absolute path, `hosts` a node set, `directory` what relative paths beside it begin at.
    `rank_table` is the name of the copy in the run directory. Each is empty where there was none.
    `host_defaults` are keys of a host, `variables` those of the environment that paths were filled in with.
    """

    inventory: str = ""
    hosts: str = ""
    directory: str = ""
    rank_table: str = ""
    host_defaults: Mapping[str, str | int] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The whole collection. `what` is the selection that was asked for."""

    what: tuple[str, ...]
    hosts: tuple[HostOutcome, ...]
    tool_version: str
    finished_at: str = ""
    origin: Origin | None = None


def manifest_to_json(manifest: Manifest) -> str:
    """Return the manifest as JSON text, one line a file."""
    return "".join(manifest_pieces(manifest))


def manifest_pieces(manifest: Manifest) -> Iterator[str]:
    """Yield the manifest as JSON text, host by host: all of it may be larger than what it is made of."""
    origin = None if manifest.origin is None else asdict(manifest.origin)
    head = json.dumps({"schema": SCHEMA, **vars(manifest), "hosts": None, "origin": origin}, indent=1)
    before, _, after = head.partition('"hosts": null')
    yield before + '"hosts": [\n'
    for number, host in enumerate(manifest.hosts):
        yield (",\n" if number else "") + _host_to_json(host)
    yield f"\n ]{after}\n"


def file_document(file: CollectedFile) -> dict[str, object]:
    """Return one file's line as an object of JSON."""
    fields: dict[str, object] = {name: getattr(file, name) for name in CollectedFile.__slots__}
    if file.reduced_from_bytes is None:
        del fields["reduced_from_bytes"]
    return fields


def _host_to_json(host: HostOutcome) -> str:
    head = json.dumps({**vars(host), "files": None})
    return head.replace('"files": null', f'"files": [\n{host.files.as_text()}]')


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        InputError: the file is missing, or not a manifest.
        SchemaError: it has another schema version.
    """
    with read_as(f"{path}: not a readable manifest"):
        document = json_of(path.read_bytes())
        found = document.pop("schema")
        if found != SCHEMA:
            raise SchemaError(f"{path}: schema {found!r} found, {SCHEMA!r} wanted")
        return _manifest_from_document(document)


def file_from_json(document: dict[str, Any]) -> CollectedFile:
    """Return one file's line of a manifest; fields that a later version added are left out.

    Raises:
        ValueError, TypeError: it has values that no collection writes.
    """
    file = CollectedFile(**_known(CollectedFile, document))
    texts, numbers = (
        (file.path, file.source, file.sha256, file.state, file.reason),
        (file.size_bytes, file.mtime_ns),
    )
    if not all(type(text) is str and "\0" not in text for text in texts):
        raise ValueError(f"a file {str(file.source)[:80]!r} whose names are no texts, or hold a NUL")
    if not all(type(number) is int for number in numbers):
        raise ValueError(f"a file {file.source[:80]!r} whose size or time is no number")
    return file


def _manifest_from_document(document: dict[str, Any]) -> Manifest:
    hosts = tuple(
        HostOutcome(**{**_host(host), "files": FileList(file_from_json(file) for file in host["files"])})
        for host in document["hosts"]
    )
    origin = document.get("origin")
    return Manifest(
        **{
            **_known(Manifest, document),
            "hosts": hosts,
            "what": tuple(document["what"]),
            "origin": None if origin is None else Origin(**_known(Origin, origin)),
        }
    )


def _host(document: dict[str, Any]) -> dict[str, Any]:
    found = _known(HostOutcome, document)
    for name in ("host", "server_id", "state", "reason", "same_files_as"):
        text = found.get(name, "")
        if type(text) is not str or "\0" in text:
            raise ValueError(f"a host whose {name} is no text, or holds a NUL: {str(text)[:80]!r}")
    return found


def _known(
    kind: type[HostOutcome] | type[Manifest] | type[CollectedFile] | type[Origin], document: dict[str, Any]
) -> dict[str, Any]:
    """Leave out the fields that a later version added."""
    return {name: value for name, value in document.items() if name in kind.__dataclass_fields__}
