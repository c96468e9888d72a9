"""The Helm chart: linted and rendered by Helm's own engine, and the same as what kustomize builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_run.version import VERSION
from tests.hook.kubernetes.pod_security import pod_specs, violations
from tests.hook.kubernetes.test_manifests import KUBERNETES, built, built_in, built_with, validate

CHART = KUBERNETES / "chart"
#: Values of a site that uses everything.
_SITE = {
    "image": {"repository": "registry/cluster-profiler", "tag": "9", "pullSecrets": []},
    "sweep": {
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "extraArgs": ["--tell=findings"],
        "podAnnotations": {"sidecar.istio.io/inject": "false"},
        "timeLimit": 900,
    },
    "supplementalGroups": [3000],
    "profiles": {"hostPath": "/mnt/profiles"},
    "results": {"hostPath": "/mnt/results"},
    "webhookCa": "site-ca",
    "webhookProxy": "http://proxy.site:3128",
    "web": {"enabled": True, "host": "reports.site"},
    "nodes": {"enabled": True, "namespace": "collectors", "profilesHostPath": "/npu", "runAsUser": 1000},
}


def helm() -> Any:
    return pytest.importorskip(
        "helm_python.chart", reason="Helm's library is not installed here: pip install '.[k8s-test]'"
    )


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what Helm makes of the chart."""
    with helm().Chart.load(str(CHART)) as chart:
        texts = chart.render(values, name="cluster-hook", namespace="training")
    return [one for text in texts.values() for one in yaml.safe_load_all(text) if one]


def by_name(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the objects by kind and name, without the namespace, which Helm gives when it installs; volumes
    in one order.
    """
    found = {}
    for spec in pod_specs(objects).values():
        spec["volumes"].sort(key=lambda volume: str(volume["name"]))
        for container in spec["containers"]:
            container["volumeMounts"].sort(key=lambda mount: str(mount["name"]))
    for one in objects:
        metadata = {key: value for key, value in one["metadata"].items() if key != "namespace"}
        for subject in one.get("subjects", []):
            subject.pop("namespace", None)
        found[f"{one['kind']}/{metadata['name']}"] = {**one, "metadata": metadata}
    return found


@pytest.mark.parametrize("values", [{}, {"web": {"enabled": True}}, _SITE])
def test_helm_finds_nothing_to_complain_about(values: dict[str, Any]) -> None:
    report = helm().lint(str(CHART), values, strict=True, kube_version="v1.25.0")
    assert report["errors"] == []
    assert [one for one in report["messages"] if one["severity"] > 1] == []


@pytest.mark.parametrize(
    "values",
    [
        {"imagee": {}},
        {"sweep": {"extraArgs": ["x"]}},
        {"supplementalGroups": ["a"]},
        {"nodes": {"runAsUser": 0}},
        {"profiles": {"claim": ""}},
        {"results": {"claim": "", "hostPath": ""}},
        {"profiles": {"hostPath": "relative"}},
        {"sweep": {"schedule": "every five minutes"}},
        {"sweep": {"schedule": "* * * *"}},
        {"sweep": {"schedule": "a b c d e"}},
        {"sweep": {"extraArgs": ["--deadline=900"]}},
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(values: dict[str, Any]) -> None:
    assert helm().lint(str(CHART), values, strict=True)["errors"]


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "0,30 8-18/2 * JAN-MAR MON-FRI", "@hourly"])
def test_a_schedule_that_kubernetes_takes_is_taken(schedule: str) -> None:
    assert helm().lint(str(CHART), {"sweep": {"schedule": schedule}}, strict=True)["errors"] == []


def test_a_deadline_beyond_the_sweeps_own_is_refused() -> None:
    helm()
    with pytest.raises(Exception, match=r"deadline is longer than sweep\.timeLimit"):
        rendered({"sweep": {"deadline": 900}})


@pytest.mark.slow
def test_the_chart_makes_what_kustomize_builds() -> None:
    assert by_name(rendered({})) == by_name(built("shared-claim"))


@pytest.mark.slow
def test_the_chart_with_its_web_server_makes_what_kustomize_builds_with_it(tmp_path: Path) -> None:
    assert by_name(rendered({"web": {"enabled": True}})) == by_name(built_with("web", tmp_path))


@pytest.mark.slow
def test_the_chart_with_collectors_on_the_nodes_makes_what_kustomize_builds_with_them(tmp_path: Path) -> None:
    both = [*built_with("nodes-sweep", tmp_path), *built_in(KUBERNETES / "nodes")]
    assert by_name(rendered({"nodes": {"enabled": True}})) == by_name(both)


@pytest.mark.slow
@pytest.mark.parametrize("values", [{"web": {"enabled": True}}, _SITE])
def test_what_helm_renders_is_strictly_valid(values: dict[str, Any]) -> None:
    validate(rendered(values))


def test_what_helm_renders_is_admitted_by_the_restricted_level() -> None:
    specs = pod_specs(rendered({"web": {"enabled": True}}))
    assert len(specs) == 2
    assert {name: violations(spec) for name, spec in specs.items()} == {name: [] for name in specs}


def test_a_site_gets_what_it_says() -> None:
    objects = by_name(rendered(_SITE))
    spec = pod_specs(list(objects.values()))["CronJob/cluster-hook-sweep"]
    (container,) = spec["containers"]
    assert container["image"] == "registry/cluster-profiler:9"
    assert {"--results-url=https://reports.site", "--tell=findings", "--time-limit=900"} <= set(
        container["args"]
    )
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["HTTPS_PROXY"] == "http://proxy.site:3128"
    (mounted,) = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "webhook-ca"]
    assert environment["SSL_CERT_FILE"] == f"{mounted}/ca.crt"
    assert spec["nodeSelector"] == {"kubernetes.io/arch": "arm64"}
    assert spec["securityContext"]["supplementalGroups"] == [3000]
    assert "imagePullSecrets" not in spec
    assert "PersistentVolumeClaim/cluster-hook-results" not in objects


def test_collectors_get_the_directory_user_and_namespace_of_the_site() -> None:
    objects = by_name(rendered(_SITE))
    spec = pod_specs(list(objects.values()))["DaemonSet/cluster-node-collector"]
    assert {"name": "node-profiles", "hostPath": {"path": "/npu", "type": "Directory"}} in spec["volumes"]
    assert spec["securityContext"]["runAsUser"] == 1000
    assert objects["Namespace/collectors"]["metadata"]["labels"] == {
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/warn": "baseline",
    }


def test_the_chart_names_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
