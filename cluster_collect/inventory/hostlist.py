"""Hosts on the command line: `--hosts 'trainer@node[01-16]:2222,10.0.0.9'` and `--hosts ^FILE`.

Slurm's host lists (`$SLURM_JOB_NODELIST`) are node sets. A file has one host or node set a line;
words behind it (`slots=8`) and comments are passed over.
"""

from __future__ import annotations

import re
from pathlib import Path

from cluster_collect.inventory.keys import Entry
from cluster_collect.inventory.located import Located, not_utf8
from cluster_collect.inventory.nodesets import has_operators, split_list
from cluster_collect.spec import parse_server
from cluster_run.errors import InputError

#: How messages call the command line.
COMMAND_LINE = "--hosts"

_LINE = re.compile(r"\w[\w@.\[\]:,/-]*(?<!:)(?:\s+\w+=\S*)*")


def read_hosts(text: str) -> tuple[Entry, ...]:
    """Read the value of --hosts.

    Raises:
        UsageError: not a list of hosts.
        InputError: the file after `^` cannot be read.
    """
    if text.startswith("^"):
        return _read_file(Path(text[1:]))
    return tuple(_entry(part.strip(), COMMAND_LINE, 0) for part in _parts(text))


def _read_file(path: Path) -> tuple[Entry, ...]:
    try:
        return read_host_lines(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise not_utf8(str(path), error) from error
    except OSError as error:
        raise InputError(f"{path}: the list of hosts cannot be read: {error.strerror or error}") from error


def is_host_list(text: str) -> bool:
    """Tell a plain list of hosts: on each line a host or node set, and at most words like `slots=8`."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return any(lines) and all(not line or _LINE.fullmatch(line) for line in lines)


def read_host_lines(text: str, file: str) -> tuple[Entry, ...]:
    """Read a file with a host or node set a line.

    Raises:
        UsageError: a line that is no host, with its number.
    """
    lines = text.splitlines()
    words = [(number, line.partition("#")[0].split()) for number, line in enumerate(lines, start=1)]
    return tuple(
        _entry(part, file, number) for number, found in words if found for part in split_list(found[0])
    )


def _parts(text: str) -> list[str]:
    # The operators need the whole expression; in a plain list each part may have a user and a port.
    return [text] if has_operators(text) else split_list(text)


def _entry(part: str, file: str, line: int) -> Entry:
    where = Located(part, file, line)
    server = parse_server(part)
    if not server.name:
        raise where.wrong(f"not a list of hosts: {part!r}", "write it like node[01-16]")
    said = {"address": server.name, "user": server.user, "port": server.port}
    return Entry(where, {key: Located(str(one), file, line) for key, one in said.items() if one is not None})
