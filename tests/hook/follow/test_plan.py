from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml

from cluster_collect.arguments import parse_arguments
from cluster_collect.inventory.load import InventoryRequest, load_inventory
from cluster_hook.follow.file_systems import file_system_of, is_shared_between_hosts
from cluster_hook.follow.inventory import inventory_text, read_defaults, server_ids_of
from cluster_hook.follow.pipeline import RunPlan, plan_run, unattended
from cluster_hook.follow.view import View, write_view
from cluster_hook.job import ProfileRequest, ReportedJob, parse_request
from cluster_run.errors import InputError
from cluster_run.ids import ServerId
from cluster_run.manifest import read_manifest
from cluster_run.ranktable import parse_rank_table
from tests.hook.jobs import a_job

_TABLE = {
    "version": "1.0",
    "status": "completed",
    "server_list": [
        {"server_id": "10.0.0.2", "device": [{"device_id": "0", "rank_id": "0"}]},
        {"server_id": "n1.cluster", "device": [{"device_id": "0", "rank_id": "1"}]},
    ],
}


def plan(job: ReportedJob) -> RunPlan:
    request = parse_request(job)
    assert request is not None
    return plan_run(job, request, {})


def a_table(directory: Path) -> Path:
    path = directory / "table.json"
    path.write_text(json.dumps(_TABLE))
    return path


def test_one_shared_directory_is_analysed_where_it_is(tmp_path: Path) -> None:
    made = plan(a_job(work_dir=tmp_path))
    assert made == RunPlan(tmp_path / "prof", tmp_path / "prof" / "cluster_analysis_output")


def test_results_go_where_the_comment_says(tmp_path: Path) -> None:
    made = plan(a_job(work_dir=tmp_path, comment="profile_dir=prof,profile_results=/out/%j"))
    assert made.results == Path("/out/12")


def test_a_directory_on_the_same_disk_as_the_work_directory_is_not_taken_for_shared(tmp_path: Path) -> None:
    """`/home` and `/data` on a node's own `/` are on one device, and every node has others."""
    if is_shared_between_hosts(tmp_path):
        pytest.skip("the directory for tests lies on a file system of the network here")
    (tmp_path / "data").mkdir()
    (tmp_path / "home").mkdir()
    made = plan(a_job(work_dir=tmp_path / "home", comment=f"profile_dir={tmp_path}/data"))
    assert made.inventory


# As Linux writes it; `/scratch my` has a blank, and `/data` two mounts at one place.
_MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 22 0:41 / /scratch\\040my rw - lustre 10.0.0.1@o2ib:/fs rw
32 22 0:42 / /data rw - autofs systemd-1 rw
33 32 0:43 / /data rw - gpfs data rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/prof", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/prof", "nfs4"),
        ("/homes/ada", "ext4"),
        ("/scratch my/x", "lustre"),
        ("/data/x", "gpfs"),
    ],
)
def test_the_table_of_mounts_says_what_a_path_lies_on(path: str, kind: str) -> None:
    assert file_system_of(path, _MOUNTS) == kind


def test_a_host_without_a_table_of_mounts_says_nothing() -> None:
    assert file_system_of("/home", "") == ""


def test_a_directory_on_another_file_system_is_collected_from_the_nodes(tmp_path: Path) -> None:
    made = plan(a_job(work_dir=tmp_path, comment="profile_dir=/proc/self"))
    hosts = yaml.safe_load(made.inventory)["hosts"]
    assert [host["address"] for host in hosts] == ["node1", "node2"]
    assert made.run == tmp_path / "cluster-run-12"


def test_a_misspelt_directory_in_the_work_directory_is_not_looked_for_on_the_nodes(tmp_path: Path) -> None:
    made = plan(a_job(work_dir=tmp_path, comment="profile_dir=porf/x"))
    assert made.run == tmp_path / "porf" / "x"


def test_the_comment_decides_where_it_says_how(tmp_path: Path) -> None:
    assert plan(a_job(work_dir=tmp_path, comment="profile_dir=p,profile_via=ssh")).inventory
    assert not plan(a_job(work_dir=tmp_path, comment="profile_dir=/proc,profile_via=shared")).inventory


def test_nodes_that_slurm_forgot_cost_only_what_needs_them(tmp_path: Path) -> None:
    assert not plan(a_job(work_dir=tmp_path, nodes=None)).inventory
    with pytest.raises(InputError, match="cluster-collect"):
        plan(a_job(work_dir=tmp_path, nodes=None, comment="profile_dir=p,profile_via=ssh"))


def test_a_rank_table_comes_with_links_to_shared_data(tmp_path: Path) -> None:
    a_table(tmp_path)
    made = plan(a_job(work_dir=tmp_path, comment="profile_dir=prof,rank_table=table.json"))
    assert made.view is not None
    assert made.view.hosts == ("10.0.0.2", "n1.cluster")
    assert made.view.data == tmp_path / "prof"


def test_a_rank_table_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json"):
        plan(a_job(work_dir=tmp_path, comment="profile_dir=prof,rank_table=none.json"))


def test_the_collector_reads_the_inventory_that_the_hook_writes(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    text = inventory_text(("n2", "n1"), ("10.0.0.2", "n1.cluster"), "/data/%N", table, {"user": "ada"})
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    hosts = load_inventory(InventoryRequest(file=path), {}).specs
    assert [(one.address, one.server_id, one.profiler_root, one.user) for one in hosts] == [
        ("n2", "10.0.0.2", "/data/n2", "ada"),
        ("n1", "n1.cluster", "/data/n1", "ada"),
    ]


def test_a_node_gets_the_name_that_the_rank_table_has_for_it() -> None:
    table = parse_rank_table(json.dumps(_TABLE), "table")
    addresses = {"n2": ("fe80::1", "10.0.0.2")}
    names = server_ids_of(("n1", "n2", "n3"), table, lambda node: addresses.get(node, ()))
    assert names == ("n1.cluster", "10.0.0.2", "n3")


def test_without_a_rank_table_nobody_asks_the_resolver() -> None:
    def resolve(_node: str) -> tuple[str, ...]:
        raise AssertionError("asked")

    assert server_ids_of(("n1", "n2"), None, resolve) == ("n1", "n2")


def test_a_view_links_what_is_there_and_names_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "prof" / "n1").mkdir(parents=True)
    nodes = (ServerId("n1"), ServerId("n2"))
    view = View(nodes, tuple(tmp_path / "prof" / one for one in nodes), pattern=f"{tmp_path}/prof/%N")
    write_view(view, tmp_path / "run")
    assert (tmp_path / "run/cluster_profiler/1/profiler").resolve() == tmp_path / "prof" / "n1"
    states = {
        one.server_id: (one.state, one.reason) for one in read_manifest(tmp_path / "run/manifest.json").hosts
    }
    assert states["n1"] == ("complete", "")
    assert states["n2"] == ("failed", f"there is no directory {tmp_path}/prof/%N")
    assert (tmp_path / "run/host_ips_mapping.txt").read_text() == "n1 1\nn2 2\n"


def test_a_view_is_brought_up_to_date_when_it_is_written_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_view(View((ServerId("x"),), data=tmp_path / name), tmp_path / "run")
    assert (tmp_path / "run" / "data").resolve() == tmp_path / "b"


@pytest.mark.parametrize("text", ["", "hosts: []", "defaults: 7", "{", "\udc80", "defaults: {port: ssh}"])
def test_host_defaults_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(InputError, match=r"site\.yaml"):
        read_defaults(path)


def test_paths_of_host_defaults_are_those_beside_the_sites_file(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        "defaults: {user: ada, port: 22, identity_file: keys/id, known_hosts: /k, ssh_config: ~/c}"
    )
    assert read_defaults(path) == {
        "user": "ada",
        "port": "22",
        "identity_file": f"{tmp_path}/keys/id",
        "known_hosts": "/k",
        "ssh_config": "~/c",
    }


def test_a_request_for_each_node_is_known_by_its_pattern() -> None:
    assert ProfileRequest("/p/%N", None, "auto", None).is_per_node
    assert not ProfileRequest("/p", None, "auto", None).is_per_node


def test_a_collector_that_nobody_calls_again_has_all_the_time_for_each_host_and_ends_by_itself() -> None:
    options = parse_arguments(["--hosts=any", *unattended(100.0)]).options
    assert options.host_deadline_s == math.inf
    assert 50 < options.deadline_s < 100
