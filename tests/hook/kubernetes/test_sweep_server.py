"""The sweep and the API server: long lists, passing failures, missing rights, odd objects."""

from __future__ import annotations

import pytest

from cluster_hook.kubernetes.api import ApiError
from cluster_hook.kubernetes.trainingjob import STATE
from tests.hook.kubernetes.sweep_site import ASCEND, BATCH, LABELS, VOLCANO, Site

MAPS = ("/api/v1", "configmaps")


def test_all_pages_of_a_long_list_are_read(site: Site) -> None:
    site.cluster.page_length = 2
    for number in range(5):
        site.add_job(f"train-{number}")
    assert len(site.sweep()) == 5


def test_a_list_that_the_server_forgot_is_read_again_and_each_job_once(site: Site) -> None:
    site.cluster.page_length = 2
    site.cluster.forgets_pages = True
    for number in range(5):
        site.add_job(f"train-{number}")
    assert [state for _, state in site.sweep()] == ["retried"] * 5


def test_a_passing_failure_of_the_server_is_tried_again(site: Site) -> None:
    site.add_job("train")
    site.cluster.failures = [503, 429]
    assert site.sweep() == [("jobs/train", "retried")]


def test_a_missing_role_is_named_with_what_to_do(site: Site) -> None:
    site.cluster.forbidden = {(BATCH, "jobs")}
    with pytest.raises(ApiError, match=r"jobs is forbidden.*rbac\.yaml"):
        site.sweep()


def test_a_missing_role_for_a_further_kind_costs_only_that_kind(site: Site) -> None:
    site.cluster.kinds.add((VOLCANO, "jobs"))
    site.cluster.forbidden = {(VOLCANO, "jobs")}
    site.add_job("train")
    assert ("jobs/train", "retried") in site.sweep()


def test_a_kind_that_the_server_cannot_list_costs_no_other_kind_and_is_no_success(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_hook.kubernetes.api._PAUSES_S", (0.01,) * 3)
    site.cluster.broken = {(BATCH, "jobs"), (VOLCANO, "jobs")}
    site.cluster.kinds.add((VOLCANO, "jobs"))
    site.add_job("train", kind=(ASCEND, "ascendjobs"))
    with pytest.raises(ApiError, match=r"batch/v1.*conversion webhook"):
        site.sweep()
    assert site.cluster.annotations("train", ASCEND, "ascendjobs")[STATE] == "retry"


def test_an_object_of_another_form_costs_only_itself(site: Site) -> None:
    site.add_job("good")
    site.cluster.add(BATCH, "jobs", "bad", status={"conditions": [7]}, metadata={"labels": LABELS})
    assert site.sweep() == [("jobs/good", "retried")]


def test_a_job_that_may_not_be_annotated_costs_no_other_job_and_is_no_success(site: Site) -> None:
    for name in ("a-guarded", "b-train"):
        site.add_job(name)
    site.cluster.guarded = {"a-guarded"}
    with pytest.raises(ApiError, match=r"a-guarded.*denied the request"):
        site.sweep()
    assert site.said("b-train", "state") == "retry"


def test_a_missing_role_for_rank_tables_is_said_once_and_costs_nothing_else(site: Site) -> None:
    site.cluster.kinds.add(MAPS)
    site.cluster.forbidden = {MAPS}
    for name in ("one", "two"):
        site.add_job(name)
    assert site.sweep() == [("configmaps", "failed"), ("jobs/one", "retried"), ("jobs/two", "retried")]
