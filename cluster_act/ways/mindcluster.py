"""Tells ClusterD of MindCluster by a PublicFault: a ConfigMap that it reads.

It drops invalid ones silently, so the document is validated first (`schemas/public_fault.schema.json`), and
the sender has to be in the site's list.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cluster_act.values import Case, RefusedError
from cluster_act.ways.process import run
from cluster_run.errors import spoken
from cluster_run.files import json_of

#: ClusterD's code of a slow node (SubHealth).
_SLOW = "110001010"
_MAX_DESCRIPTION = 512
_LAST_DEVICE = 31
#: Senders that ClusterD knows by itself; the site's file replaces them.
BUILT_IN = ("CCAE", "fd-online", "pingmesh", "Netmind", "dpcStorage", "dtfsStorage")


@dataclass(frozen=True)
class MindCluster:
    """`customization` is the site's publicCustomization.json, as the machine that this runs on sees it."""

    sender: str = "cluster-act"
    customization: Path = Path("/user1/mindx-dl/clusterd/publicCustomization.json")
    namespace: str = "cluster-system"

    def check(self) -> None:
        """Refuse where ClusterD would drop the fault: its sender or code is not in the list."""
        senders: list[str] = list(BUILT_IN)
        codes = {_SLOW}
        if self.customization.exists():
            try:
                document = json_of(self.customization.read_bytes())
                senders = list(document["publicFaultResource"])
                codes = {code for level in document["publicFaultCode"].values() for code in level}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise RefusedError(f"{self.customization}: cannot be read: {spoken(error)}") from error
        if self.sender not in senders:
            raise RefusedError(
                f"ClusterD knows no sender {self.sender}: it would drop the fault unseen",
                f"add it to publicFaultResource of {self.customization}, with all codes and senders that are "
                "built in, which that file replaces; or name one with --sender",
            )
        if _SLOW not in codes:
            raise RefusedError(f"{self.customization}: code {_SLOW} is not in publicFaultCode")

    def described(self, case: Case) -> tuple[str, str]:
        """Return what is told to ClusterD, and what takes it back."""
        return (
            f"PublicFault {case.token}: occur {_SLOW} on {_where(case)}",
            f"PublicFault {case.token}: recover, with the same faultId (deleting the ConfigMap does nothing)",
        )

    def apply(self, case: Case) -> str:
        """Write the fault, which stands until it recovers: ClusterD ends one told `once` after 5 s."""
        return self._send(case, "occur")

    def undo(self, case: Case) -> str:
        """Write that it has recovered; the fault's id is ours."""
        return self._send(case, "recover")

    def _send(self, case: Case, assertion: Literal["occur", "recover"]) -> str:
        self.check()
        fault = json.dumps(public_fault(case, self.sender, assertion, int(time.time() * 1000)))
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": case.token,
                "namespace": self.namespace,
                "labels": {"mc-consumer-publicfault": "true"},
            },
            "data": {"PublicFault": fault},
        }
        run(["kubectl", "apply", "-f", "-"], changes=True, stdin=json.dumps(config_map))
        return (
            f"{assertion} of {case.token} told; whether ClusterD took it says its ConfigMap cluster-info-cm"
        )


def _where(case: Case) -> str:
    return f"the host {case.node}" if case.device is None else f"device {case.device} of {case.node}"


def public_fault(
    case: Case, sender: str, assertion: Literal["occur", "recover"], now_ms: int
) -> dict[str, Any]:
    """Return the document that ClusterD reads; `deviceIds` are the driver's numbers, all of a host.

    A recovery has the same fault id and code as what it ends.

    Raises:
        RefusedError: no device is known that it could name, or one that ClusterD does not take.
    """
    if not case.devices or case.devices[-1] > _LAST_DEVICE:
        raise RefusedError(
            f"{_where(case)}: ClusterD takes device numbers 0 to {_LAST_DEVICE}, not {list(case.devices)}",
            "cluster-fleet add a run of it first: its devices are told with it",
        )
    described = "".join(letter for letter in case.evidence.en if letter.isprintable())
    return {
        "id": f"{case.token}-{now_ms}",
        "timestamp": now_ms,
        "version": "1.0",
        "resource": sender,
        "faults": [
            {
                "faultId": case.token,
                "faultType": "Node" if case.device is None else "NPU",
                "faultCode": _SLOW,
                "faultTime": now_ms,
                "assertion": assertion,
                "faultLocation": {"unit": case.unit[:128]},
                "influence": [{"nodeName": case.node.lower(), "deviceIds": list(case.devices)}],
                "description": described[:_MAX_DESCRIPTION],
            }
        ],
    }
