"""Makes one run directory of what a job left on its nodes' own disks, by asking their collectors.

Which nodes a job ran on is known from its pods, which may go soon after it; so the sweep remembers them.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

from cluster_hook.follow.inventory import server_ids_of
from cluster_hook.follow.view import link_directory, write_run_files
from cluster_hook.kubernetes.api import ApiClient
from cluster_hook.kubernetes.node_exchange import (
    ONLY_HOST,
    NodeRequest,
    is_node_name,
    read_ended,
    read_request,
    write_request,
)
from cluster_hook.kubernetes.trainingjob import NODE_DIR, PROFILE_DIR, TrainingJob
from cluster_run.errors import ClusterError, InputError
from cluster_run.files import json_of, write_text_whole
from cluster_run.ids import HostId, ServerId
from cluster_run.layout import MANIFEST_NAME, RANK_TABLE_NAME, host_directory
from cluster_run.manifest import FileList, HostOutcome, read_manifest
from cluster_run.ranktable import read_rank_table

NODES_NAME = "nodes.json"
RUN_NAME = "run"


def asked_directory(job: TrainingJob, exchange: Path | None) -> Path | None:
    """Return where the collectors are asked for a job's data; None where it needs none, or there are none."""
    if exchange is None or NODE_DIR not in job.annotations:
        return None
    return exchange / f"{job.namespace}-{job.name}-{job.uid[:8]}"


def remember_nodes(api: ApiClient, job: TrainingJob, work_dir: Path) -> None:
    """Add the nodes of the job's pods to those known; a pod that was replaced has left data, too."""
    if NODE_DIR not in job.annotations or job.is_settled:
        return
    path = work_dir / NODES_NAME
    known = _nodes(work_dir)
    found = dict(known)
    # Without pods there are no nodes, which is reported in its place.
    with contextlib.suppress(ClusterError):
        for pod in api.list(f"/api/v1/namespaces/{job.namespace}/pods", ""):
            owners = pod.get("metadata", {}).get("ownerReferences") or []
            node = str(pod.get("spec", {}).get("nodeName") or "")
            if is_node_name(node) and any(owner.get("uid") == job.uid for owner in owners):
                found[node] = str((pod.get("status") or {}).get("hostIP") or found.get(node, ""))
    if found != known:
        with contextlib.suppress(OSError):
            write_text_whole(path, json.dumps(found, indent=1, sort_keys=True) + "\n")


def _nodes(work_dir: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        document = json_of((work_dir / NODES_NAME).read_text())
        return {str(node): str(address) for node, address in document.items()}
    return {}


def wait_for_nodes(
    job: TrainingJob, exchange: Path | None, work_dir: Path, now_s: float, patience_s: float
) -> str:
    """Ask the nodes' collectors, once; return what is still awaited, empty if nothing is."""
    asked, nodes = asked_directory(job, exchange), _nodes(work_dir)
    if asked is None or not nodes:
        return ""
    request = read_request(asked)
    if request is None:  # or it was damaged
        request = NodeRequest(nodes, job.annotations[NODE_DIR], job.began_s, now_s)
        try:
            write_request(asked, request)
        except OSError:
            return ""  # `assemble` says so.
    waiting = [node for node in request.nodes if read_ended(asked / node) is None]
    if not waiting or now_s - request.asked_s > patience_s:
        return ""
    return f"waits for the collectors of {len(waiting)} of {len(request.nodes)} nodes"


def assemble(job: TrainingJob, asked: Path | None, work_dir: Path, patience_s: float) -> tuple[Path, str]:
    """Make a run directory of links to the parts of all nodes; its manifest names those that are missing.

    Return it, and what nodes that gave something could not give.

    Raises:
        InputError: there are no collectors, or the job's nodes are unknown.
        OSError: it cannot be written.
    """
    if PROFILE_DIR in job.annotations:
        raise InputError(f"the job has the annotations {PROFILE_DIR} and {NODE_DIR}", "say one of them")
    if asked is None:
        raise InputError(
            f"the job has the annotation {NODE_DIR}, and this sweep has no collectors on the nodes",
            "install them (deploy/kubernetes/nodes), or let the job write to a volume",
        )
    request = read_request(asked)
    if request is None and _nodes(work_dir):
        raise InputError(f"{asked}: the collectors could not be asked", "may the sweep write there?")
    if request is None:
        raise InputError(
            "no pod of the job was seen on any node, so it is not known where its data are",
            "the sweep needs the role of deploy/kubernetes/nodes-sweep; pods that go with their job need its "
            "finalizer",
        )
    run = asked / RUN_NAME
    numbered = numbered_nodes(request, work_dir)
    hosts = {server_id: HostId(str(number)) for number, server_id in enumerate(numbered.values(), start=1)}
    outcomes = []
    for node, server_id in numbered.items():
        host = hosts[server_id]
        link_directory(host_directory(run, host), host_directory((asked / node).absolute(), ONLY_HOST))
        outcomes.append(_outcome(asked / node, host, server_id, patience_s))
    table = work_dir / RANK_TABLE_NAME
    write_run_files(run, "node-collect", hosts, outcomes, table if table.is_file() else None)
    partial = [f"host {one.host}: {one.reason}" for one in outcomes if one.state == "partial" and one.reason]
    return run, "; ".join(partial)


def numbered_nodes(request: NodeRequest, work_dir: Path) -> dict[str, ServerId]:
    """Return what the rank table calls each node, in its order; nodes that it does not know come last."""
    nodes, table = request.nodes, None
    with contextlib.suppress(InputError):
        table = read_rank_table(work_dir / RANK_TABLE_NAME)
    names = sorted(nodes)
    server_ids = server_ids_of(names, table, lambda node: (nodes[node],) if nodes[node] else ())
    order = {server_id: place for place, server_id in enumerate(table.server_ids)} if table else {}
    pairs = sorted(zip(names, server_ids, strict=True), key=lambda pair: order.get(pair[1], len(order)))
    return dict(pairs)


def _outcome(part: Path, host: HostId, server_id: ServerId, patience_s: float) -> HostOutcome:
    reason = read_ended(part)
    if reason is None:
        reason = f"the node's collector did not answer within {patience_s / 60:g} minutes"
        advice = "is the node gone, or its cluster-node-collector pod not ready?"
        return HostOutcome(host, server_id, "failed", reason=reason, advice=advice)
    try:
        (collected,) = read_manifest(part / MANIFEST_NAME).hosts
    except (InputError, ValueError) as error:
        return HostOutcome(host, server_id, "failed", reason=reason or str(error))
    own, ours = (f"{host_directory(Path(), one).as_posix()}/" for one in (ONLY_HOST, host))
    files = FileList(replace(file, path=ours + file.path.removeprefix(own)) for file in collected.files)
    return replace(collected, host=host, server_id=server_id, files=files)
