"""The restricted level of the Pod Security Standards, as the documents of Kubernetes have it for Linux."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
    *("persistentVolumeClaim", "projected", "secret"),
}


def pod_specs(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pod of each object that makes pods, by kind and name."""
    ways = {"CronJob": ("jobTemplate", "spec", "template", "spec"), "Job": ("template", "spec")}
    found = {}
    for one in objects:
        if "spec" in one and one["kind"] in ("CronJob", "Job", "Deployment", "DaemonSet"):
            spec = one["spec"]
            for key in ways.get(one["kind"], ("template", "spec")):
                spec = spec[key]
            found[f"{one['kind']}/{one['metadata']['name']}"] = spec
    return found


def violations(spec: Mapping[str, Any]) -> list[str]:
    """Return what the restricted level forbids of a pod."""
    return [
        *_of_pod(spec),
        *(one for container in _containers(spec) for one in _of_container(spec, container)),
    ]


def _containers(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"], *spec.get("ephemeralContainers", [])]


def _of_pod(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    if spec.get("securityContext", {}).get("sysctls"):
        yield "sysctls"
    for volume in spec.get("volumes", []):
        yield from (f"volume {kind}" for kind in volume.keys() - {"name"} - _VOLUMES)


def _of_container(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    pod, own = spec.get("securityContext", {}), container.get("securityContext", {})
    both = {**pod, **own}
    capabilities = own.get("capabilities", {})
    wanted = {
        "privileged": not own.get("privileged"),
        "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
        "capabilities": "ALL" in capabilities.get("drop", [])
        and set(capabilities.get("add", [])) <= {"NET_BIND_SERVICE"},
        "runAsNonRoot": both.get("runAsNonRoot") is True,
        "runAsUser": both.get("runAsUser") != 0,
        "seccompProfile": both.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
        "procMount": own.get("procMount", "Default") == "Default",
        "hostPort": not any(port.get("hostPort") for port in container.get("ports", [])),
    }
    yield from (f"{container['name']}: {name}" for name, holds in wanted.items() if not holds)
