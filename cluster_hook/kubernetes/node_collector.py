"""`cluster-hook node-collect`: copies what jobs left on one node's own disk to the volume of the sweep.

It runs on each node (a DaemonSet), because whoever may create pods in a namespace that allows hostPath may
become root on every node: so the sweep gets no such right, and the collectors no access to the API at all.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster_hook.isolation import our_command, refuse_as_root
from cluster_hook.kubernetes.node_exchange import NodeRequest, read_ended, requests, write_ended
from cluster_hook.processes import run_command
from cluster_run.errors import ExitCode, InputError
from cluster_run.ids import SUSPECTS
from cluster_run.layout import FINDINGS_NAME, MANIFEST_NAME
from cluster_run.manifest import read_manifest


@dataclass(frozen=True)
class CollectorOptions:
    """Which node this is, where its profiles are mounted, and where requests come from.

    `deadline_s` is what one job may take. `what` is cluster-collect's.
    """

    node: str
    profiles: Path
    exchange: Path
    what: str = "columns"
    deadline_s: float = 600.0


def collect_asked(options: CollectorOptions, report: Callable[[str, str], None]) -> None:
    """Do all open requests to this node; a failure is written down and costs its part.

    `report` gets the name of each request as it ends, and why it failed, empty where it did not.

    Raises:
        OSError: the exchange cannot be read.
    """
    options.exchange.stat()  # a directory that is not mounted is not one without requests
    for asked, request in requests(options.exchange):
        part = asked / options.node
        if options.node not in request.nodes or read_ended(part) is not None:
            continue
        try:
            reason = _why_not(request, options) or _collect(request, part, options)
        except OSError as error:
            reason = f"its collector: {error.strerror or error}"
        # Without an end the next look does it again, as far as it is not done.
        with contextlib.suppress(OSError):
            if asked.is_dir():
                write_ended(part, reason)
        report(asked.name, reason)


def _why_not(request: NodeRequest, options: CollectorOptions) -> str:
    """Return why the directory that is asked for cannot be collected; empty where it can."""
    given = Path(request.directory)
    directory = options.profiles / given
    # A link on the node must not lead out of the mounted directory.
    inside = not given.is_absolute() and ".." not in given.parts
    if not inside or not directory.resolve().is_relative_to(options.profiles.resolve()):
        return f"{request.directory!r} leads out of the directory of the node"
    if not directory.is_dir():
        return f"there is no directory {request.directory} on the node"
    try:
        refuse_as_root(directory.stat().st_uid)
    except InputError as error:
        return str(error)
    return ""


def _collect(request: NodeRequest, part: Path, options: CollectorOptions) -> str:
    root = str((options.profiles / request.directory).resolve())
    host = {"local": root, "profiler_root": root, "server_id": options.node}
    what = [f"--what={options.what}"]
    if request.suspects_for:
        what = ["--what=full", f"--ranks={SUSPECTS}", f"--findings={part.parent / FINDINGS_NAME}"]
    since = [] if request.began_s is None else ["--since", f"@{request.began_s:.0f}"]
    with tempfile.TemporaryDirectory(prefix="cluster-node-") as directory:
        inventory = Path(directory) / "hosts.yaml"
        inventory.write_text(json.dumps({"version": 1, "hosts": [host]}))
        end = run_command(
            our_command(
                "cluster_collect",
                "--host-deadline=none",  # nobody calls it again
                *("--inventory", str(inventory), "--output", str(part), *what),
                *("--hide-addresses", "--quiet", *since),
            ),
            name="cluster-collect",
            deadline_s=options.deadline_s,
            capture=True,
        )
    if end.code in (ExitCode.DONE, ExitCode.INCOMPLETE):
        return ""
    # The manifest knows more than the last line, if there is one.
    with contextlib.suppress(InputError):
        if reasons := [host.reason for host in read_manifest(part / MANIFEST_NAME).hosts if host.reason]:
            return reasons[0]
    return end.reason
