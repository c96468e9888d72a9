"""Whatever a file holds, reading it ends with an inventory or with an error that says what is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.inventory.hostlist import read_hosts
from cluster_collect.inventory.keys import HOST_KEYS
from cluster_collect.inventory.load import limit
from cluster_collect.inventory.native import TOP_KEYS
from cluster_run.errors import ClusterError
from tests.collect.inventory.helpers import load, native

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["n[1-3]", "~", "a", "10M"])
)
HOSTS = st.dictionaries(st.sampled_from([*HOST_KEYS, "bogus"]), SCALARS, max_size=4)
VALUES = SCALARS | HOSTS | st.lists(HOSTS | SCALARS, max_size=3)
DOCUMENTS = st.dictionaries(st.sampled_from([*TOP_KEYS, "all", "cluster", "bogus"]), VALUES, max_size=6)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inventory")


def read(directory: Path, text: str) -> None:
    with contextlib.suppress(ClusterError):
        assert load(directory, text, environment={}).specs


@given(text=st.text())
def test_any_text(text: str, directory: Path) -> None:
    read(directory, text.encode(errors="replace").decode())


@given(document=DOCUMENTS)
def test_any_document_of_known_and_unknown_keys(document: dict[str, object], directory: Path) -> None:
    read(directory, yaml.safe_dump({"version": 1, **document}))


@given(host=HOSTS)
def test_any_host(host: dict[str, object], directory: Path) -> None:
    read(directory, yaml.safe_dump({"version": 1, "defaults": {"profiler_root": "/p"}, "hosts": [host]}))


GROUPS = st.dictionaries(
    st.sampled_from(["hosts", "children", "vars"]),
    st.none()
    | st.dictionaries(st.sampled_from(["a", "n[1:3]", "n[a:c]", "n[3:1]"]), st.none() | HOSTS, max_size=3),
    max_size=3,
)


@given(groups=st.dictionaries(st.sampled_from(["all", "rack"]), GROUPS, min_size=1))
def test_any_ansible_inventory(groups: dict[str, object], directory: Path) -> None:
    read(directory, yaml.safe_dump(groups))


ACCOUNTS = st.dictionaries(
    st.text(max_size=5) | st.just("10.0.0.1"),
    SCALARS | st.dictionaries(st.sampled_from(["user", "passwd", "port"]), SCALARS),
)


@given(cluster=ACCOUNTS)
def test_any_account_file(cluster: dict[str, object], directory: Path) -> None:
    read(directory, yaml.safe_dump({"rank_size": 1, "cluster": cluster}))


@given(text=st.text("n12[-],/!&^:@*? .", max_size=20))
def test_any_list_of_hosts_and_any_limit(text: str, directory: Path) -> None:
    for work in (
        lambda: read_hosts(text),
        lambda: load(directory, native("- address: a"), hosts=text),
        lambda: limit(load(directory, native("- address: n[1-3]\n- local: /x\n  server_id: m")), text),
    ):
        with contextlib.suppress(ClusterError):
            work()
