"""What a site installs: the Kubernetes manifests, the image's recipe, the systemd units."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_hook.cli import build_parser
from cluster_hook.kubernetes import trainingjob
from cluster_run.version import VERSION
from tests.commands import ran
from tests.hook.kubernetes.pod_security import pod_specs, violations

REPOSITORY = Path(__file__).parents[3]
KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
OVERLAYS = ("shared-claim", "host-paths")
#: Directories whose objects are complete in their files.
_WHOLE = ("base", "example", "live", "web", "nodes", "nodes-sweep")
#: The oldest version the manifests are for.
_OLDEST_MINOR = 25


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


@functools.cache
def built(overlay: str) -> list[dict[str, Any]]:
    """Return what kustomize makes of an overlay."""
    skip_without_kustomize()
    return built_in(KUBERNETES / "overlays" / overlay)


def skip_without_kustomize() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl, which has kustomize inside, is not installed here")
    asked = ran(["kubectl", "version", "--client"])
    if not re.search(r"Kustomize Version: v[4-9]", asked.stdout):
        pytest.skip("the kubectl here is older than 1.21: its kustomize does not know `patches`")


def built_in(directory: Path) -> list[dict[str, Any]]:
    """Return what kustomize makes of a directory."""
    skip_without_kustomize()
    argv = ["kubectl", "kustomize", "--load-restrictor=LoadRestrictionsNone", str(directory)]
    ended = ran(argv)
    assert ended.returncode == 0, ended.stderr
    return [one for one in yaml.safe_load_all(ended.stdout) if one]


def built_with(component: str, directory: Path) -> list[dict[str, Any]]:
    """Return what kustomize makes of the sweep with a component; the overlay is put into `directory`."""
    # kustomize takes relative paths only.
    root = os.path.relpath(KUBERNETES, directory.resolve())
    resources, components = f"[{root}/overlays/shared-claim]", f"[{root}/{component}]"
    (directory / "kustomization.yaml").write_text(
        f"namespace: training\nresources: {resources}\ncomponents: {components}\n"
    )
    return built_in(directory)


def whole_objects() -> list[dict[str, Any]]:
    """Return the objects that are complete in their files, as every version must accept them."""
    files = [
        *(path for name in _WHOLE for path in (KUBERNETES / name).glob("*.yaml")),
        KUBERNETES / "overlays" / "shared-claim" / "results-claim.yaml",
    ]
    return [
        one for path in files for one in documents(path) if one["kind"] not in ("Kustomization", "Component")
    ]


def cron_job(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return next(one for one in objects if one["kind"] == "CronJob")


def pod_spec(objects: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = cron_job(objects)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def validate(objects: list[dict[str, Any]]) -> None:
    validator = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed here: pip install '.[k8s-test]'"
    )
    newest = int(validator.latest_version().split(".")[1])
    assert newest > _OLDEST_MINOR
    # Kubernetes takes no field back: what the oldest and the newest version know, all between them know.
    for minor in (_OLDEST_MINOR, newest):
        for one in objects:
            validator.validate(one, f"1.{minor}", strict=True)


@pytest.mark.slow
def test_every_manifest_is_strictly_valid_from_1_25_to_the_newest_version_known() -> None:
    validate(whole_objects())


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_kustomize_builds_is_strictly_valid_from_1_25_to_the_newest_version_known(overlay: str) -> None:
    validate(built(overlay))


@pytest.mark.slow
def test_the_validation_finds_a_misspelt_field() -> None:
    objects = [one for one in whole_objects() if one["kind"] == "CronJob"]
    objects[0]["spec"]["concurencyPolicy"] = "Forbid"
    with pytest.raises(Exception, match="concurencyPolicy"):
        validate(objects)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_profiles_are_mounted_read_only_and_the_results_are_not(overlay: str) -> None:
    (container,) = pod_spec(built(overlay))["containers"]
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in container["volumeMounts"]}
    assert mounts == {"/profiles": True, "/results": False, "/tmp": False}
    volumes = {one["name"] for one in pod_spec(built(overlay))["volumes"]}
    assert {one["name"] for one in container["volumeMounts"]} == volumes


def test_the_sweep_runs_without_rights_on_its_node() -> None:
    spec = pod_spec(documents(KUBERNETES / "base" / "cronjob.yaml"))
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_no_sweep_can_block_the_next_ones_for_long() -> None:
    cron = cron_job(documents(KUBERNETES / "base" / "cronjob.yaml"))["spec"]
    job = cron["jobTemplate"]["spec"]
    (container,) = pod_spec(documents(KUBERNETES / "base" / "cronjob.yaml"))["containers"]
    parsed = build_parser().parse_args(container["args"])
    assert parsed.time_limit < job["activeDeadlineSeconds"] <= 600
    assert job["backoffLimit"] == 0
    assert re.fullmatch(r"\*/\d+ \* \* \* \*", cron["schedule"])


def test_the_role_suffices_for_what_the_sweep_calls_and_allows_nothing_more() -> None:
    (role,) = [one for one in documents(KUBERNETES / "base" / "rbac.yaml") if one["kind"] == "Role"]
    allowed = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    kinds = {
        (kind.group_version.partition("/")[0], kind.plural): {"list", "patch"} for kind in trainingjob.KINDS
    }
    assert allowed == {**kinds, ("", "configmaps"): {"get"}}


def test_collectors_on_the_nodes_give_the_sweep_the_right_to_list_pods_and_none_to_make_them() -> None:
    roles = [one for name in ("nodes", "nodes-sweep") for path in (KUBERNETES / name).glob("*.yaml")
             for one in documents(path) if "Role" in one["kind"]]  # fmt: skip
    assert [one["kind"] for one in roles] == ["Role", "RoleBinding"]
    assert roles[0]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


def test_a_collector_has_one_directory_of_its_node_read_only_and_neither_token_nor_rights_nor_network() -> (
    None
):
    objects = {one["kind"]: one for one in built_in(KUBERNETES / "nodes")}
    (spec,) = pod_specs(list(objects.values())).values()
    assert violations(spec) == ["volume hostPath"]
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in container["volumeMounts"]}
    assert mounts == {"/node-profiles": True, "/exchange": False, "/tmp": False}
    assert objects["NetworkPolicy"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert objects["NetworkPolicy"]["spec"].keys() == {"podSelector", "policyTypes"}, "nothing is allowed"
    assert objects["Namespace"]["metadata"]["name"] == spec_namespace(objects["DaemonSet"]) != "training"
    build_parser().parse_args(container["args"])


def spec_namespace(one: dict[str, Any]) -> str:
    return str(one["metadata"]["namespace"])


def test_sweep_and_collectors_meet_in_one_directory(tmp_path: Path) -> None:
    objects = [*built_in(KUBERNETES / "nodes"), *built_with("nodes-sweep", tmp_path)]
    volumes = [one["spec"] for one in objects if one["kind"] == "PersistentVolume"]
    assert volumes[0]["nfs"] == volumes[1]["nfs"]
    claims = {
        (spec_namespace(one), one["metadata"]["name"]) for one in objects if one["kind"].endswith("Claim")
    }
    assert {(one["claimRef"]["namespace"], one["claimRef"]["name"]) for one in volumes} <= claims
    (container,) = pod_spec(objects)["containers"]
    exchange = build_parser().parse_args(container["args"]).node_exchange
    assert str(exchange) in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_example_job_asks_for_the_sweep_with_the_words_it_looks_for() -> None:
    (job,) = documents(KUBERNETES / "example" / "example-job.yaml")
    selector = build_parser().parse_args(["sweep", "--profiles=p", "--results=r"]).selector
    key, _, value = selector.partition("=")
    assert job["metadata"]["labels"][key] == value
    directory = job["metadata"]["annotations"][trainingjob.PROFILE_DIR]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == f"/profiles/{directory}"


def test_the_manifests_name_this_version() -> None:
    (component,) = documents(KUBERNETES / "image" / "kustomization.yaml")
    assert [one["newTag"] for one in component["images"]] == [VERSION]


def test_the_example_runs_the_image_of_the_sweep() -> None:
    images = {
        container["image"]
        for objects in (built("shared-claim"), built_in(KUBERNETES / "example"))
        for spec in pod_specs(objects).values()
        for container in spec["containers"]
    }
    assert images == {f"cluster-profiler:{VERSION}"}


def test_every_pod_of_our_image_can_fetch_it_from_a_registry_that_asks_who_it_is() -> None:
    pods = pod_specs(whole_objects()).values()
    ours = [one for one in pods if "cluster-profiler" in one["containers"][0]["image"]]
    assert len(ours) >= 3
    assert all(one["imagePullSecrets"] == [{"name": "cluster-profiler-pull"}] for one in ours)


def test_every_pod_is_admitted_by_the_restricted_level() -> None:
    specs = pod_specs([*whole_objects(), *built("shared-claim")])
    del specs["DaemonSet/cluster-node-collector"]  # in a namespace of its own, see above
    assert len(specs) == 4
    assert {name: violations(spec) for name, spec in specs.items()} == {name: [] for name in specs}


def test_only_the_overlay_that_says_so_needs_the_privileged_level() -> None:
    (spec,) = pod_specs(built("host-paths")).values()
    assert violations(spec) == ["volume hostPath", "volume hostPath"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"securityContext": {}}, "sweep: runAsNonRoot"),
        ({"volumes": [{"name": "x", "hostPath": {}}]}, "volume hostPath"),
    ],
)
def test_the_check_of_the_level_finds_what_it_forbids(change: dict[str, Any], told: str) -> None:
    spec = pod_spec(documents(KUBERNETES / "base" / "cronjob.yaml"))
    assert told in violations({**spec, **change})


def test_the_image_runs_the_hook_as_the_user_of_the_manifests_and_copies_only_the_wheel() -> None:
    recipe = (REPOSITORY / "Dockerfile").read_text()
    spec = pod_spec(documents(KUBERNETES / "base" / "cronjob.yaml"))["securityContext"]
    assert f"USER {spec['runAsUser']}:{spec['runAsGroup']}" in recipe
    assert 'ENTRYPOINT ["cluster-hook"]' in recipe
    assert re.findall(r"^COPY (\S+)", recipe, re.MULTILINE) == ["dist/cluster_profiler-*.whl"]


def test_the_help_of_the_sweep_needs_the_standard_library_alone() -> None:
    ended = ran([sys.executable, "-S", "-m", "cluster_hook", "sweep", "--help"], cwd=REPOSITORY, check=True)
    assert "--profiles" in ended.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for path in (REPOSITORY / "deploy" / "systemd").glob("cluster-*.*"):
        # The commands are not installed here; everything else is read as it is.
        (tmp_path / path.name).write_text(
            re.sub("/opt/cluster-profiler/bin/cluster-[a-z]+", "/bin/true", path.read_text())
        )
    units = [
        str(tmp_path / name)
        for name in ("cluster-hook-drain.service", "cluster-hook-drain.timer", "cluster-live.service")
    ]
    ended = ran(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units])
    ours = [line for line in ended.stderr.splitlines() if re.search("cluster-(hook|live)", line)]
    assert (ended.returncode, ours) == (0, []), ended.stderr


def test_the_unit_and_what_cron_starts_call_the_drain_with_options_it_knows() -> None:
    deploy = REPOSITORY / "deploy"
    unit = (deploy / "systemd" / "cluster-hook-drain.service").read_text()
    script = (deploy / "slurm" / "drain_by_cron.sh").read_text()
    (of_unit,) = re.findall(r"/opt/cluster-profiler/bin/cluster-hook ([a-z][^$>\n]*)", unit)
    (of_script,) = re.findall(r'"\$program" ([a-z][^$>\n]*)', script)
    for words in (of_unit, of_script):
        build_parser().parse_args(words.split())
    installed = "/etc/slurm/cluster-hook-drain.sh"
    assert installed in script
    assert installed in (deploy / "systemd" / "cluster-hook-drain.cron").read_text()
