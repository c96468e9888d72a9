"""The sweep against an API server on loopback, with real analyses of simulated jobs."""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_hook.kubernetes import api
from cluster_hook.kubernetes.api import ApiAccess, ApiClient, ApiError
from cluster_hook.kubernetes.sweep import Swept, sweep
from cluster_hook.kubernetes.trainingjob import PREFIX
from cluster_run.errors import InputError
from tests.commands import HANGS_S
from tests.hook.kubernetes.sweep_site import ASCEND, BATCH, ENDED, RUNNING, VOLCANO, Site


@pytest.mark.slow
def test_a_job_that_ended_is_analysed_once_carries_the_verdict_and_its_profile_stays_as_it_was(
    site: Site, simulated: Path
) -> None:
    data = site.add_data(simulated, "train")
    before = sorted(data.rglob("*"))
    site.add_job("train")
    assert site.sweep() == [("jobs/train", "done")]
    assert (site.said("train", "state"), site.said("train", "verdict")) == ("done", "degraded")
    assert "Rank 7 " in site.said("train", "summary")
    assert site.findings()["findings"][0]["ranks"] == [7]
    assert site.said("train", "claim") == ""
    assert site.sweep() == []
    assert sorted(data.rglob("*")) == before


NOT_COMPLETE = {"conditions": [{"type": "Complete", "status": "False"}]}
ON_ITS_WAY = [
    *(((BATCH, "jobs"), status) for status in (RUNNING, {}, NOT_COMPLETE)),
    *(((VOLCANO, "jobs"), {"state": {"phase": one}}) for one in ("Running", "Pending", "Completing")),
]


@pytest.mark.parametrize(("kind", "status"), ON_ITS_WAY)
def test_a_job_on_its_way_is_left_alone(site: Site, kind: tuple[str, str], status: dict[str, Any]) -> None:
    site.add_job("train", kind=kind, status=status)
    assert site.sweep() == []


def test_a_damaged_rank_table_beside_the_results_stops_no_sweep(site: Site) -> None:
    site.add_job("train")
    table = site.options.results / "training" / "train-00000000" / "hccl.json"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"\xff")
    assert site.sweep() == [("jobs/train", "failed")]


def test_a_job_without_the_label_is_left_alone(site: Site) -> None:
    site.cluster.add(BATCH, "jobs", "other", status=ENDED)
    assert site.sweep() == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ((BATCH, "jobs"), {"conditions": [{"type": "Failed", "status": "True"}]}),
        ((VOLCANO, "jobs"), {"state": {"phase": "Aborted", "lastTransitionTime": "2026-01-01T00:00:00Z"}}),
        ((ASCEND, "ascendjobs"), {"conditions": [{"type": "Succeeded", "status": "True"}]}),
    ],
)
def test_jobs_of_all_three_kinds_are_found_when_they_ended(
    site: Site, kind: tuple[str, str], status: dict[str, Any]
) -> None:
    site.add_job("train", kind=kind, status=status)
    assert site.sweep() == [(f"{kind[1]}/train", "retried")]


def test_a_job_without_data_ends_as_a_named_failure_after_its_attempts(site: Site) -> None:
    site.add_job("train")
    assert [site.sweep()[0][1] for _ in range(3)] == ["retried", "retried", "failed"]
    assert (site.said("train", "state"), site.said("train", "verdict")) == ("failed", "unknown")
    assert "there is no directory" in site.said("train", "summary")
    assert site.sweep() == []


def test_a_list_that_the_server_never_finishes_is_begun_anew_three_times_and_no_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_PAUSES_S", (0.01,) * 3)
    site.cluster.page_length, site.cluster.always_forgets_pages = 1, True
    for name in ("a", "b", "c"):
        site.add_job(name)
    with pytest.raises(ApiError, match="410"):
        site.sweep()
    assert site.cluster.calls.count("GET /apis/batch/v1/namespaces/training/jobs") == 8


@pytest.mark.parametrize("target", ["/proc/self/environ", "../../outside"])
@pytest.mark.parametrize("name", ["communication.json", "directory"])
def test_a_link_out_of_the_volume_is_not_followed(site: Site, tmp_path: Path, target: str, name: str) -> None:
    (tmp_path / "outside").mkdir()
    data = site.options.profiles / "train"
    data.mkdir()
    (data / "inside").symlink_to(site.options.profiles)
    (data / name).symlink_to(target)
    site.add_job("train")
    site.sweep()
    assert f"train/{name} is a link that leads out of the profile volume" in site.said("train", "summary")


@pytest.mark.slow
def test_a_job_of_kubernetes_is_given_no_advice_of_slurm(site: Site) -> None:
    (site.options.profiles / "nothing").mkdir()
    for name in ("missing", "nothing", "each%N"):
        site.add_job(name.partition("%")[0], profile_dir=name)
    site.sweep(n_attempts=1)
    for name in ("missing", "nothing", "each"):
        said = site.said(name, "summary")
        assert not re.search("Slurm|sbatch|profile_via|comment|%j", said), said
    assert "cluster-hook/node-dir" in site.said("missing", "summary")


@pytest.mark.slow
def test_an_empty_directory_is_no_data_either(site: Site) -> None:
    (site.options.profiles / "train").mkdir()
    site.add_job("train")
    assert site.sweep(n_attempts=1) == [("jobs/train", "failed")]
    assert "no profiler data" in site.said("train", "summary")


@pytest.mark.slow
def test_half_written_data_are_analysed_as_far_as_they_go_and_the_rest_is_a_problem(
    site: Site, simulated: Path
) -> None:
    data = site.add_data(simulated, "train")
    victim = sorted(data.rglob("step_trace_time.csv"))[0]
    victim.write_bytes(victim.read_bytes()[:50])
    os.utime(victim, (1_700_000_000, 1_700_000_000))
    site.add_job("train")
    assert site.sweep() == [("jobs/train", "done")]
    findings = site.findings()
    assert findings["problems"]
    assert "problem" in site.said("train", "summary")


@pytest.mark.slow
def test_data_that_still_grow_wait_for_the_next_sweep(site: Site) -> None:
    late = site.options.profiles / "train" / "late"
    late.parent.mkdir()
    late.write_text("still here")
    site.add_job("train", status={"conditions": [{"type": "Complete", "status": "True"}]})
    assert site.sweep() == [("jobs/train", "later")]
    assert site.said("train", "state") == ""
    for path in (late, late.parent):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert site.sweep() == [("jobs/train", "retried")], "it is looked at, and no profile is in it"


def test_a_job_that_ended_a_moment_ago_waits(site: Site) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    site.add_job("train", status={**ENDED, "completionTime": now})
    assert site.sweep() == [("jobs/train", "later")]


@pytest.mark.slow
def test_data_that_never_stop_growing_are_read_in_the_end(site: Site) -> None:
    (site.options.profiles / "train").mkdir()
    (site.options.profiles / "train" / "log").write_text("written right now")
    site.add_job("train")
    assert site.sweep() == [("jobs/train", "retried")], "it ended months ago"


def test_of_two_sweeps_at_once_one_takes_the_job(site: Site) -> None:
    site.add_job("train")
    both_listed = threading.Barrier(2, timeout=HANGS_S)
    ends: list[list[tuple[str, str]]] = []

    def one_sweep(holder: str) -> None:
        told: list[Swept] = []
        client = _Meeting(ApiAccess(site.cluster.url), both_listed)
        sweep(client, replace(site.options, holder=holder), told.append)
        ends.append([(one.job, one.state) for one in told])

    threads = [threading.Thread(target=one_sweep, args=(f"sweep-{number}",)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    assert sorted(ends) == [[("jobs/train", "elsewhere")], [("jobs/train", "retried")]]
    assert site.said("train", "attempts") == "1"


class _Meeting(ApiClient):
    """A client that waits for the other sweep before its first change, so that both saw the job unclaimed."""

    def __init__(self, access: ApiAccess, barrier: threading.Barrier) -> None:
        super().__init__(access)
        self._barrier: threading.Barrier | None = barrier

    def merge_patch(self, path: str, change: Any) -> Any:
        barrier, self._barrier = self._barrier, None
        if barrier is not None:
            barrier.wait()
        return super().merge_patch(path, change)


def test_a_job_that_a_living_sweep_claimed_is_left_to_it(site: Site) -> None:
    site.add_job("train", annotations={PREFIX + "claim": f"other until {int(time.time()) + 600}"})
    assert site.sweep() == [("jobs/train", "elsewhere")]


@pytest.mark.parametrize(
    "claim", ["other until 1000", "nonsense", "other until soon", "other until " + "9" * 30]
)
def test_the_claim_of_a_dead_sweep_or_of_nobody_loses_no_job(site: Site, claim: str) -> None:
    site.add_job("train", annotations={PREFIX + "claim": claim, PREFIX + "attempts": "1"})
    assert site.sweep() == [("jobs/train", "retried")]
    assert site.said("train", "attempts") == "2"


def test_a_job_that_kills_every_sweep_is_given_up(site: Site) -> None:
    site.add_job("train", annotations={PREFIX + "claim": "other until 1000", PREFIX + "attempts": "3"})
    assert site.sweep() == [("jobs/train", "failed")]
    assert "every sweep died" in site.said("train", "summary")


def test_a_job_that_was_deleted_meanwhile_is_no_trouble(site: Site) -> None:
    site.add_job("train")
    site.cluster.before_patch = lambda key: site.cluster.objects.pop(key, None)
    assert site.sweep() == [("jobs/train", "elsewhere")]


def test_the_verdict_never_lands_on_a_new_job_of_the_same_name(site: Site) -> None:
    site.add_job("train")
    patches = []

    def recreate(key: tuple[str, str, str, str]) -> None:
        patches.append(key)
        if len(patches) == 2:
            site.cluster.objects[key]["metadata"] |= {"uid": "another", "annotations": {}}

    site.cluster.before_patch = recreate
    assert site.sweep(n_attempts=1) == [("jobs/train", "failed")]
    assert site.cluster.annotations("train") == {}


@pytest.mark.parametrize("profile_dir", ["", "/etc", "../x", "a/../../x", "out"])
def test_a_job_cannot_point_outside_of_the_profile_volume(site: Site, profile_dir: str) -> None:
    (site.options.profiles / "out").symlink_to("/etc")
    site.add_job("train", profile_dir=profile_dir)
    assert site.sweep() == [("jobs/train", "failed")]
    assert PREFIX + "profile-dir" in site.said("train", "summary")


@pytest.mark.slow
def test_the_rank_table_is_kept_while_the_job_runs_and_used_when_its_config_map_is_gone(
    site: Site, simulated: Path
) -> None:
    data = {"hccl.json": (simulated / "hccl.json").read_text()}
    config_map = site.cluster.add("/api/v1", "configmaps", "rings-config-train", data=data)
    site.add_data(simulated, "train")
    site.add_job("train", status=RUNNING)
    assert site.sweep() == []
    del site.cluster.objects["/api/v1", "training", "configmaps", config_map["metadata"]["name"]]
    site.cluster.objects[BATCH, "training", "jobs", "train"]["status"] = ENDED
    assert site.sweep() == [("jobs/train", "done")]
    findings = site.findings()
    assert findings["run"]["hosts"] == 2
    assert findings["findings"][0]["hosts"] == ["2"]


@pytest.mark.slow
def test_a_rank_table_that_is_not_completed_is_asked_for_again(site: Site, simulated: Path) -> None:
    early = {"data": {"hccl.json": '{"status": "initializing", "server_list": []}'}}
    config_map = site.cluster.add("/api/v1", "configmaps", "rings-config-train", **early)
    site.add_job("train", status=RUNNING)
    site.sweep()
    assert list(site.options.results.rglob("hccl.json")) == []
    config_map["data"] = {"hccl.json": (simulated / "hccl.json").read_text()}
    site.sweep()
    assert len(list(site.options.results.rglob("hccl.json"))) == 1


def test_no_job_is_begun_that_might_not_end_in_time(site: Site) -> None:
    site.add_job("train")
    assert site.sweep(time_s=10.0) == [("jobs/train", "later")]
    assert site.said("train", "attempts") == ""


def test_no_job_is_looked_at_where_the_profile_volume_is_not_there(site: Site, tmp_path: Path) -> None:
    site.add_job("train")
    with pytest.raises(InputError, match="the profile volume is not there"):
        site.sweep(profiles=tmp_path / "unmounted")
    assert site.cluster.calls == []
