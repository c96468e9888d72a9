"""The sweep and the API server: long lists, passing failures, missing rights, odd objects."""

from __future__ import annotations

import pytest

from cluster_hook.kubernetes.api import ApiError
from tests.hook.kubernetes.sweep_site import BATCH, LABELS, VOLCANO, Site


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


def test_an_object_of_another_form_costs_only_itself(site: Site) -> None:
    site.add_job("good")
    site.cluster.add(BATCH, "jobs", "bad", status={"conditions": [7]}, metadata={"labels": LABELS})
    assert site.sweep() == [("jobs/good", "retried")]
