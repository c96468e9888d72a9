"""Requests of other users: with their rights, in the site's environment, and what their processes may say."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_hook.follow.pipeline import FollowOptions, follow
from cluster_hook.isolation import identity_of
from cluster_hook.job import ProfileRequest
from cluster_run.errors import InputError
from tests.commands import ended, ran
from tests.hook.jobs import a_job
from tests.hook.public_python import NOBODY, make_public_python, needs_root, public_directory
from tests.hook.spool.spool_site import STAND_IN, Site

pytestmark = needs_root


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """An interpreter that every user can run, with the hook."""
    with public_directory() as root:
        yield make_public_python(root)


def drain_as_root(
    python: Path, site: Site, *options: str, path: str = ""
) -> subprocess.CompletedProcess[str]:
    """Drain with an interpreter that other users can run."""
    environment = {
        **os.environ,
        "PATH": path or f"{STAND_IN}:{os.environ['PATH']}",
        "CLUSTER_HOOK_WEBHOOK_URL": "http://127.0.0.1:9/not-for-users",
    }
    how = (f"--spool={site.spool.root}", "--attempts=1", "--tell=never")
    return ran([python, "-I", "-m", "cluster_hook", "drain", *how, *options], env=environment)


def test_a_request_is_worked_on_in_the_name_of_its_user(site: Site, tmp_path: Path, python: Path) -> None:
    secret = tmp_path / "only-for-root"
    secret.write_text("s3cret")
    secret.chmod(0o600)
    comment = f"profile_dir=p,profile_via=ssh,rank_table={secret}"
    site.drop("1", nodes="n1", comment=comment, uid=NOBODY)
    ended = drain_as_root(python, site)
    assert ended.returncode == 3, ended.stderr
    assert "Permission denied" in site.reason("1")


def test_a_user_that_this_host_does_not_know_ends_as_a_named_failure(site: Site) -> None:
    site.drop("1", nodes="n1", uid=4_000_000_001)
    site.drain(n_attempts=1)
    assert "user 4000000001" in site.reason("1")


def test_where_groups_cannot_be_listed_a_user_has_all_of_his_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    several = [
        one for one in pwd.getpwall() if len(os.getgrouplist(one.pw_name, one.pw_gid)) > 1 and one.pw_uid
    ]
    if not several:
        pytest.skip("no user of this host is in a second group")
    monkeypatch.setattr(grp, "getgrall", list)
    user = identity_of(several[0].pw_uid)
    assert user is not None
    assert set(user.groups) == set(os.getgrouplist(several[0].pw_name, several[0].pw_gid))


def test_a_drain_that_finds_no_scontrol_says_so_and_keeps_the_request(site: Site, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    site.drop("1")
    process = site.start_drain(path=str(empty))
    said, _ = ended(process)
    assert process.returncode == 1
    assert "1 unasked" in said
    assert "scontrol" in said
    assert (site.keys("pending"), site.keys("failed")) == (["1"], [])
    assert site.spool.attempts("1").number == 0


@contextmanager
def saying(python: Path, document: object) -> Iterator[None]:
    """Have the interpreter say this when a user runs it, as whoever owns a process can make it."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    text = json.dumps(document).encode()
    lines = ["import os", f"if os.geteuid() == {NOBODY}:", f"    os.write(1, {text!r})", "    os._exit(0)"]
    (packages / "forged.py").write_text("\n".join(lines))
    (packages / "forged.pth").write_text("import forged\n")
    try:
        yield
    finally:
        (packages / "forged.pth").unlink()


_FINDING = {"id": "a", "kind": "b", "severity": "critical", "summary": "c"}
_VERDICT = {"verdict": "degraded", "ranks": 8, "expected_ranks": 8, "problems": [], "findings": []}
_FORGED = {
    "schema": "cluster-hook/1",
    "job": {"id": "another's", "name": "of somebody else", "state": "FAILED"},
    "state": "analysed",
    "exit_code": 0,
    "reason": "host node7 must be drained " * 10_000,
    "results": "/r",
    "verdict": {
        **_VERDICT,
        "problems": ["x" * 1000] * 500,
        "findings": [{**_FINDING, "cost_ms_per_step": "1", "cost_share": None}] * 1000,
    },
    "metrics": "",
}


def test_what_a_users_process_says_is_of_his_own_job_only(site: Site, python: Path) -> None:
    site.drop("1", nodes="n1", uid=NOBODY)
    with saying(python, _FORGED):
        ended = drain_as_root(python, site, "--json")
    outcome = json.loads(ended.stdout)["outcome"]
    assert outcome["state"] == "analysed", outcome["reason"]
    assert outcome["job"] == {"id": "1", "name": "train", "state": ""}
    record = site.spool.path("done", "1", ".json")
    assert "another's" not in record.read_text()
    assert "somebody" not in record.read_text()
    assert max(record.stat().st_size, len(ended.stdout)) < 300_000


@pytest.mark.parametrize("cost", ["x", [], {}, True])
def test_values_of_another_type_are_no_outcome_and_stop_no_drain(
    site: Site, python: Path, cost: object
) -> None:
    finding = {
        "id": [],
        "kind": {},
        "severity": None,
        "summary": 1,
        "cost_ms_per_step": cost,
        "cost_share": 0,
    }
    verdict = {**_VERDICT, "verdict": [], "problems": {"a": 1}, "findings": [finding]}
    site.drop("1", nodes="n1", uid=NOBODY)
    with saying(python, {**_FORGED, "reason": [], "verdict": verdict, "metrics": []}):
        ended = drain_as_root(python, site)
    assert ended.returncode in (0, 3), ended.stderr
    assert "Traceback" not in ended.stderr
    assert site.keys("active") == []


def test_a_users_process_that_says_too_much_is_believed_nothing(site: Site, python: Path) -> None:
    site.drop("1", nodes="n1", uid=NOBODY)
    with saying(python, {**_FORGED, "reason": "x" * 4_000_000}):
        assert drain_as_root(python, site).returncode == 3
    assert len(site.reason("1")) < 5000


def test_root_reads_nobodys_data_whoever_asks(tmp_path: Path) -> None:
    (tmp_path / "prof").mkdir()
    request = ProfileRequest(str(tmp_path / "prof"), None, "shared", None)
    for uid in (None, NOBODY):
        outcome = follow(a_job(work_dir=tmp_path, uid=uid), request, FollowOptions())
        assert (outcome.state, "root does not read" in outcome.reason) == ("failed", True)


def test_who_is_neither_root_nor_the_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    with pytest.raises(InputError, match="belongs to user 7"):
        identity_of(7)
