"""A run that came as one file: tar (plain, gzip, zstd) or zip, unpacked next to the other scratch files.

An archive is not trusted: only plain files and directories below its root are taken.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from cluster_analysis.engine.scratch import scratch_directory
from cluster_run.errors import InputError, spoken

#: By what a name ends with, which forms are unpacked.
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst")
_ZSTD = (".zst", ".tzst")
FORMS = (*_TAR, ".zip")


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of a form that we unpack, by its name."""
    return path.is_file() and path.name.lower().endswith(FORMS)


def output_next_to(path: Path) -> Path:
    """Return where the output of an archive goes: next to it, `run1.tar.zst` → `run1.analysis`."""
    stem = next(path.name[: -len(end)] for end in FORMS[::-1] if path.name.lower().endswith(end))
    return path.with_name(f"{stem}.analysis")


@contextmanager
def unpacked(path: Path, scratch: Path | None) -> Iterator[Path]:
    """Give the directory that holds what is in an archive; it is removed afterwards.

    Raises:
        InputError: it is damaged, holds what leads out of it, or does not fit.
    """
    with scratch_directory(scratch) as room:
        folder = Path(room) / path.name.partition(".")[0]
        folder.mkdir()
        try:
            for name, content in _members(path):
                target = folder / _inside(name, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, _zstd_error()) as error:
            raise InputError(f"{path}: damaged, or no archive: {error}", "copy it again") from error
        except OSError as error:
            raise InputError(
                f"{path}: cannot be unpacked: {spoken(error)}", "--scratch DIR names another place"
            ) from error
        inside = list(folder.iterdir())
        yield inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Give each plain file: its name and its content, to be read at once."""
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as content:
                        yield info.filename, content
        return
    with (
        path.open("rb") as file,
        _decompressed(path, file) as stream,
        tarfile.open(fileobj=stream, mode="r|*") as tar,
    ):
        for member in tar:
            plain = tar.extractfile(member) if member.isreg() else None
            if plain is not None:
                yield member.name, plain


@contextmanager
def _decompressed(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if not path.name.lower().endswith(_ZSTD):
        yield file
        return
    import zstandard  # noqa: PLC0415 - few archives need it

    with zstandard.ZstdDecompressor().stream_reader(file) as stream:
        yield stream


def _zstd_error() -> type[Exception]:
    import zstandard  # noqa: PLC0415

    return zstandard.ZstdError


def _inside(name: str, path: Path) -> PurePosixPath:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise InputError(f"{path}: holds {name!r}, which leads out of it", "it is not unpacked")
    return parts
