"""Messages between the sweep and the collectors of the nodes, as files on a volume that both mount.

A collector needs no API, no token and no network for it:

<exchange>/<job>/request.json   by the sweep: which nodes, which directory of theirs
<exchange>/<job>/<node>/        by that node's collector: a run directory of one host
<exchange>/<job>/<node>/ended.json    written last: whether it could do it
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster_run.errors import spoken
from cluster_run.files import json_of, write_text_whole
from cluster_run.ids import HostId

REQUEST_NAME = "request.json"
ENDED_NAME = "ended.json"
#: A collector's directory is a run of one host, whose number is this.
ONLY_HOST = HostId("1")
#: Made by the sweep, for its own group: the collectors may run as another user of it.
_SHARED_MODE = 0o2775
#: Names of nodes are DNS names; anything else must not become a path.
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_N_REQUEST_BYTES = 1 << 20
_FORGOTTEN_AFTER_S = 86400.0


@dataclass(frozen=True)
class NodeRequest:
    """Request to collect `directory`, below the directory of their node that collectors mount.

    `nodes` gives each node's address, empty where it is not known. Captures that were written before
    `began_s` are not the job's; None if unknown. Times are seconds since 1970. With `suspects_for`, where the
    job's results lie, only the ranks that the findings beside the request name are wanted, whole.
    """

    nodes: dict[str, str]
    directory: str
    began_s: float | None
    asked_s: float
    suspects_for: str = ""


def is_node_name(name: str) -> bool:
    """Whether a name can be that of a node."""
    return _NODE.fullmatch(name) is not None and ".." not in name


def write_request(asked: Path, request: NodeRequest) -> None:
    """Ask the nodes' collectors.

    Raises:
        OSError: it cannot be written.
    """
    asked.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):
        asked.chmod(_SHARED_MODE)
    write_text_whole(asked / REQUEST_NAME, json.dumps(asdict(request), indent=1) + "\n")


def read_request(asked: Path) -> NodeRequest | None:
    """Return what was asked in this directory; None where nothing was, or it was damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        with (asked / REQUEST_NAME).open(encoding="utf-8") as stream:
            document = json_of(stream.read(_N_REQUEST_BYTES))
        began_s = document["began_s"]
        request = NodeRequest(
            nodes={str(name): str(address) for name, address in document["nodes"].items()},
            directory=str(document["directory"]),
            began_s=None if began_s is None else float(began_s),
            asked_s=float(document["asked_s"]),
            suspects_for=str(document.get("suspects_for", "")),
        )
        return request if all(map(is_node_name, request.nodes)) else None
    return None


def requests(exchange: Path) -> Iterator[tuple[Path, NodeRequest]]:
    """Yield all requests with their directories; what cannot be read is passed over."""
    if not exchange.is_dir():
        return
    for asked in sorted(exchange.iterdir()):
        if (request := read_request(asked)) is not None:
            yield asked, request


def write_ended(part: Path, reason: str) -> None:
    """Say that a node's part has ended; `reason` is empty where it could be collected.

    Raises:
        OSError: it cannot be written.
    """
    write_text_whole(part / ENDED_NAME, json.dumps({"reason": reason}) + "\n")


def read_ended(part: Path) -> str | None:
    """Return why a node's part could not be collected, empty where it could; None where it has not ended."""
    try:
        return str(json_of((part / ENDED_NAME).read_text())["reason"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"what its collector left cannot be read: {spoken(error)}"


def forget(asked: Path) -> None:
    """Remove a request and all that was collected for it; a later call removes the rest."""
    # The request first: no collector begins what is being removed.
    with contextlib.suppress(OSError):
        (asked / REQUEST_NAME).unlink()
    shutil.rmtree(asked, ignore_errors=True)


def forget_older(exchange: Path | None, now_s: float) -> None:
    """Remove what no sweep has concluded for long: its job was deleted, or a collector came too late."""
    with contextlib.suppress(OSError):
        for asked in exchange.iterdir() if exchange is not None else ():
            request = read_request(asked)
            asked_s = asked.lstat().st_mtime if request is None else request.asked_s
            if asked.is_dir() and not asked.is_symlink() and asked_s < now_s - _FORGOTTEN_AFTER_S:
                forget(asked)
