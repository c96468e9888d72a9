from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_hook.kubernetes.api import ApiAccess, ApiClient, ApiError, access_from_pod
from cluster_hook.kubernetes.trainingjob import BATCH, CLAIM, VOLCANO, claim_text, parse_training_job
from cluster_run.errors import InputError
from tests.hook.http_server import a_server
from tests.hook.kubernetes.fake_kubernetes import fake_kubernetes

PATH = "/apis/batch/v1/namespaces/training/jobs"


def test_a_pod_talks_to_a_server_of_its_own_authority_with_its_token(tmp_path: Path) -> None:
    tls, authority = a_server(tmp_path)
    (tmp_path / "token").write_text("s3cret\n")
    authority.rename(tmp_path / "ca.crt")
    with fake_kubernetes(tls) as cluster:
        cluster.token = "s3cret"
        port = cluster.url.rpartition(":")[2]
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        client = ApiClient(access_from_pod(environment, tmp_path))
        assert list(client.list(PATH, "a=b")) == []
        (tmp_path / "token").write_text("changed")
        with pytest.raises(ApiError, match="service account") as caught:
            client.get(PATH)
    assert caught.value.status == 401
    assert "s3cret" not in str(caught.value)


def test_a_server_of_another_authority_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_hook.kubernetes.api._PAUSES_S", (0.01,) * 3)
    (tmp_path / "other").mkdir()
    tls, _ = a_server(tmp_path)
    _, other = a_server(tmp_path / "other")
    with fake_kubernetes(tls) as cluster:
        client = ApiClient(ApiAccess(cluster.url, ca_file=other))
        with pytest.raises(ApiError, match="no answer") as caught:
            client.get(PATH)
        assert cluster.calls == []
    assert caught.value.status == 0


def test_a_server_that_is_not_there_is_told_in_the_system_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_hook.kubernetes.api._PAUSES_S", (0.01,) * 3)
    with pytest.raises(ApiError, match=r"no answer from http://127\.0\.0\.1:1: Connection refused$"):
        ApiClient(ApiAccess("http://127.0.0.1:1")).get(PATH)


def test_a_server_that_says_when_to_ask_again_is_left_alone_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with fake_kubernetes() as cluster:
        cluster.add("/apis/batch/v1", "jobs", "train")
        for cluster.retry_after, expected in (("7", [7, 7]), ("", [0.5, 1]), ("3600", [10, 10])):
            cluster.failures = [429, 503]
            assert ApiClient(ApiAccess(cluster.url)).get(f"{PATH}/train") is not None
            assert pauses == expected
            pauses.clear()


def test_outside_of_a_pod_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="kubectl proxy"):
        access_from_pod({}, tmp_path)


def test_an_object_that_is_not_there_is_none() -> None:
    with fake_kubernetes() as cluster:
        assert ApiClient(ApiAccess(cluster.url)).get(f"{PATH}/none") is None


def test_a_patch_against_an_older_version_is_refused_and_changes_nothing() -> None:
    with fake_kubernetes() as cluster:
        cluster.add("/apis/batch/v1", "jobs", "train")
        client = ApiClient(ApiAccess(cluster.url))
        change = {"metadata": {"resourceVersion": "1", "annotations": {"a": "b"}}}
        with pytest.raises(ApiError) as caught:
            client.merge_patch(f"{PATH}/train", change)
        assert caught.value.status == 409
        assert cluster.annotations("train") == {}


def is_claimed(claim: str, now_s: float) -> bool:
    metadata = {"namespace": "n", "name": "j", "uid": "u", "resourceVersion": "1"}
    item = {"metadata": {**metadata, "annotations": {CLAIM: claim}}}
    return parse_training_job(BATCH, item).is_claimed(now_s)


@given(st.text(max_size=60), st.integers(0, 10**12 - 1))
def test_a_claim_holds_until_its_time_whatever_its_holder_is_called(holder: str, expires_s: int) -> None:
    claim = claim_text(holder, expires_s)
    assert is_claimed(claim, expires_s - 1)
    assert not is_claimed(claim, expires_s)


@given(st.text(max_size=40))
def test_any_annotation_is_a_claim_or_none(text: str) -> None:
    assert not is_claimed(text, 0.0) or text.rstrip("0123456789").endswith(" until ")


def test_the_times_of_a_job_are_utc() -> None:
    metadata = {"namespace": "n", "name": "j", "uid": "u", "resourceVersion": "1"}
    conditions = [{"type": "Complete", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}]
    assert (
        parse_training_job(BATCH, {"metadata": metadata, "status": {"conditions": conditions}}).finished_s
        == 60
    )
    state = {"phase": "Completed", "lastTransitionTime": "1970-01-01T00:01:00.5Z"}
    assert parse_training_job(VOLCANO, {"metadata": metadata, "status": {"state": state}}).finished_s == 60


@pytest.mark.parametrize("item", [{}, {"metadata": {}}, {"metadata": 7}])
def test_an_object_of_another_form_is_refused(item: dict[str, object]) -> None:
    with pytest.raises(InputError):
        parse_training_job(BATCH, item)


@pytest.mark.parametrize("url", ["127.0.0.1:8001", "http://[::1", "ftp://127.0.0.1", "http://"])
def test_a_server_that_cannot_be_asked_is_told_before_anything_is_asked(url: str) -> None:
    with pytest.raises(InputError, match="--api-server holds no http:// or https:// address"):
        ApiClient(ApiAccess(url))
