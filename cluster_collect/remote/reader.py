"""Programs of ours that run on hosts, like the reader of `--what columns`: one archive, everywhere the same.

It travels through standard input and is never a file there with a name. A few lines of Python take it in,
compare its SHA-256 and start it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import as_file, files

from cluster_run.version import VERSION

#: What `--what columns` runs.
_READER = "cluster_reduce"
#: The first moment that an archive can hold.
_NO_DATE = (1980, 1, 1, 0, 0, 0)
_COMPRESSION_LEVEL = 9
#: Written for any Python there is: the oldest ones have to say that they are too old.
_BOOT = """\
import sys
def unfit(why):
    sys.stdout.write("unfit %s\\n" % why)
    sys.exit(3)
if sys.version_info < (3, 7):
    unfit("python3 is %d.%d, and 3.7 is needed" % sys.version_info[:2])
sys.path.remove("")  # as -I does, which Python 2 refuses
try:
    import hashlib, os, resource, tarfile, tempfile, zlib
    content = b""
    while len(content) < {n_bytes}:
        piece = os.read(0, {n_bytes} - len(content))
        if not piece:
            sys.exit(1)
        content += piece
    content = zlib.decompress(content)
    if hashlib.sha256(content).hexdigest() != "{sha256}":
        unfit("other bytes came than were sent")
    # A file without a name: nothing is left behind, however this ends.
    try:
        archive = os.memfd_create("{package}")
    except (AttributeError, OSError):
        unnamed = tempfile.TemporaryFile()
        archive = unnamed.fileno()
    while content:
        content = content[os.write(archive, content):]
    sys.path.insert(0, "/proc/self/fd/%d" % archive)
    from {package}.__main__ import main
except (ImportError, OSError, MemoryError) as error:
    unfit("Python there: %s" % str(error).replace("\\n", " ")[:200])
sys.exit(main())
"""


@dataclass(frozen=True)
class Reader:
    """The archive of a package, its SHA-256, the program that starts it, and its sources by their names."""

    package: str
    archive: bytes
    sha256: str
    sources: Mapping[str, str]

    @cached_property
    def packed(self) -> bytes:
        """The archive as it travels."""
        return zlib.compress(self.archive, _COMPRESSION_LEVEL)

    @property
    def boot(self) -> str:
        """The program that takes the packed archive from standard input and starts it."""
        values = {"n_bytes": str(len(self.packed)), "sha256": self.sha256, "package": self.package}
        text = _BOOT
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    @property
    def name(self) -> str:
        """What people can tell it by."""
        what = "the reader of columns" if self.package == _READER else "the program of --live"
        return f"{what} {VERSION}, SHA-256 {self.sha256}"

    def as_text(self) -> str:
        """Return all that runs on a host, to be read by people."""
        head = (
            f"# {self.name}: of the archive of the sources below, not of this text\n"
            "# python3 -E -s -S -B -c, with the archive on standard input:\n\n"
        )
        return head + self.boot + "".join(f"\n# ---- {name}\n\n{text}" for name, text in self.sources.items())


@cache
def reader(package: str = _READER) -> Reader:
    """Return a package of this version that runs on hosts; equal sources make equal bytes."""
    *parents, _ = package.split(".")
    home = package.replace(".", "/")
    with as_file(files(package)) as folder:
        paths = {f"{home}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*.py")}
        sources = {name: paths[name].read_text(encoding="utf-8") for name in sorted(paths)}
    sources.update({f"{'/'.join(parents[: n + 1])}/__init__.py": "" for n in range(len(parents))})
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, text in sources.items():
            archive.writestr(zipfile.ZipInfo(name, _NO_DATE), text)
    content = stream.getvalue()
    return Reader(package, content, hashlib.sha256(content).hexdigest(), sources)


def request(names: Sequence[bytes], settings: Mapping[str, str | int | float | bool]) -> bytes:
    """Return what the reader takes from standard input behind the archive."""
    joined = b"".join(name + b"\0" for name in names)
    line = json.dumps({**settings, "names_bytes": len(joined)}, ensure_ascii=True)
    return reader().packed + line.encode() + b"\n" + joined
