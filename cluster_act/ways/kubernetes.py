"""Marks nodes of Kubernetes by kubectl: a condition, which others act on, or a taint. Neither ends a pod."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from cluster_act.values import Case, RefusedError, is_ours, reason_of
from cluster_act.ways.process import asked_about_node, run
from cluster_run.files import json_of

CONDITION = "AscendSlowDevice"
TAINT = "cluster-act/slow-device"
_MAX_MESSAGE = 1024


class _ByKubectl:
    def check(self) -> None:
        """Refuse without kubectl."""
        run(["kubectl", "version", "--client"], changes=False)


class Condition(_ByKubectl):
    """The node's condition `AscendSlowDevice`, which node-problem-detector and others read."""

    def described(self, case: Case) -> tuple[str, str]:
        """Return what the condition would be."""
        return (
            f"node {case.node}: {CONDITION}=True, {reason_of(case)}",
            f"node {case.node}: {CONDITION}=False",
        )

    def apply(self, case: Case) -> str:
        """Set it, unless it is set for another device of the node."""
        before = _condition(case.node)
        if before.get("status") == "True" and not is_ours(before.get("message", ""), case):
            raise RefusedError(f"{case.node} has {CONDITION} already: {before.get('message', '')}")
        _patch(case.node, "True", "SlowDeviceConfirmed", reason_of(case))
        return f"{case.node}: {CONDITION}=True"

    def undo(self, case: Case) -> str:
        """Set it back, if it is ours."""
        before = _condition(case.node)
        if before.get("status") != "True":
            return f"{case.node} has no {CONDITION} any more"
        if not is_ours(before.get("message", ""), case):
            raise RefusedError(f"{case.node} has {CONDITION} for another reason: {before.get('message', '')}")
        _patch(case.node, "False", "Undone", reason_of(case))
        return f"{case.node}: {CONDITION}=False"


class Taint(_ByKubectl):
    """A taint `NoSchedule`: nothing new begins there, and pods that run stay."""

    def described(self, case: Case) -> tuple[str, str]:
        """Return both command lines."""
        return (
            f"kubectl taint nodes {case.node} {TAINT}={case.token}:NoSchedule",
            f"kubectl taint nodes {case.node} {TAINT}-",
        )

    def apply(self, case: Case) -> str:
        """Set it, unless another one of that key is there."""
        value = _taint(case.node)
        if value == case.token:
            return f"{case.node} is tainted already"
        if value is not None:
            raise RefusedError(f"{case.node} has the taint {TAINT}={value} already")
        run(["kubectl", "taint", "nodes", case.node, f"{TAINT}={case.token}:NoSchedule"], changes=True)
        return f"{case.node} tainted"

    def undo(self, case: Case) -> str:
        """Take it away, if it is ours."""
        value = _taint(case.node)
        if value is None:
            return f"{case.node} is not tainted any more"
        if value != case.token:
            raise RefusedError(f"{case.node} has the taint {TAINT}={value}, which is not of this device")
        run(["kubectl", "taint", "nodes", case.node, f"{TAINT}-"], changes=True)
        return f"{case.node}: taint taken away"


def _node(name: str) -> dict[str, Any]:
    text = asked_about_node(["kubectl", "get", "node", name, "-o", "json"])
    try:
        node = json_of(text)
    except ValueError as error:
        raise RefusedError(f"kubectl says no JSON of node {name}: {error}") from error
    return node if isinstance(node, dict) else {}


def _condition(name: str) -> dict[str, str]:
    conditions = _node(name).get("status", {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == CONDITION), {})


def _taint(name: str) -> str | None:
    taints = _node(name).get("spec", {}).get("taints") or []
    return next((str(one.get("value", "")) for one in taints if one.get("key") == TAINT), None)


def _patch(node: str, status: str, reason: str, message: str) -> None:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": message[:_MAX_MESSAGE],
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    change = json.dumps({"status": {"conditions": [condition]}})
    # A strategic patch merges conditions by their type: those of others stay.
    run(
        ["kubectl", "patch", "node", node, "--subresource=status", "--type=strategic", "-p", change],
        changes=True,
    )
