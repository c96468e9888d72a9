"""Node sets expand, fold, and are counted before they are built."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.inventory.nodesets import expand, fold, select
from cluster_run.errors import UsageError
from cluster_run.ids import MAX_HOSTS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[01-04,07].cluster", ["node01", "node02", "node03", "node04", "node07"]),
        ("node7.cluster", ["node7"]),
    ],
)
def test_a_suffix_after_the_brackets_belongs_to_every_name(text: str, names: list[str]) -> None:
    assert expand(text) == tuple(f"{name}.cluster" for name in names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-16/5]", "n1 n6 n11 n16"),
        ("rack[1-2]node[01-02]", "rack1node01 rack1node02 rack2node01 rack2node02"),
        ("node[1-2]-ib[0-1]", "node1-ib0 node1-ib1 node2-ib0 node2-ib1"),
        ("10.0.0.[9-11]", "10.0.0.9 10.0.0.10 10.0.0.11"),
        ("n[1-5]!n[2-3]", "n1 n4 n5"),
        ("n[1-5]&n[4-9]", "n4 n5"),
        ("n[1-3]^n[3-4]", "n1 n2 n4"),
        ("fe80::1", "fe80::1"),
        ("[fe80::1]", "fe80::1"),
        ("node[01-16,20]", " ".join(f"node{number:02d}" for number in [*range(1, 17), 20])),
    ],
)
def test_the_grammar_of_node_sets(text: str, names: str) -> None:
    assert expand(text) == tuple(names.split())


def test_a_list_keeps_its_order_and_its_repetitions() -> None:
    assert expand("b,a[1-2], b") == ("b", "a1", "a2", "b")


@pytest.mark.parametrize(
    "text", ["n[9-1]", "n[]", "n[1-", "n[a-c]", "n[001-3]", "n1,,n2", "", ",", "node*", "@rack1"]
)
def test_what_is_no_node_set_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(text)
    assert caught.value.advice


@pytest.mark.parametrize(
    "text", ["n[1-100000000]", "n[1-300]m[1-300]", "n[0-" + "9" * 5000 + "]", ",".join(["n[1-9999]"] * 7)]
)
def test_a_node_set_that_is_too_large_is_refused_before_it_is_built(text: str) -> None:
    # Building the first one takes minutes and gigabytes: the test's own time limit is the proof.
    with pytest.raises(UsageError, match="too many hosts"):
        expand(text)


def test_the_largest_node_set_expands() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=50, unique=True), st.integers(1, 4))
def test_expanding_what_was_folded_gives_the_same_names(numbers: list[int], width: int) -> None:
    names = {f"node{number:0{width}d}.cluster" for number in numbers}
    assert set(expand(fold(names))) == names


def test_names_fold_for_messages_and_odd_ones_stay() -> None:
    assert fold(["node03", "node04", "node05", "fe80::1", "node07", "a b"]) == "node[03-05,07],fe80::1,a b"
    assert fold([]) == ""


@pytest.mark.slow
def test_5000_names_fold() -> None:
    assert fold(f"node{number:04d}" for number in range(5000)) == "node[0000-4999]"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("a,b", "AB"), ("a,b!a", "B"), ("a,b&b,c", "BC"), ("a,b^b,c", "AC"), ("n[1-2]!n1", "2"), ("x*", "XYZ")],
)
def test_operators_apply_from_left_to_right_to_what_names_stand_for(text: str, chosen: str) -> None:
    meaning = {"a": "A", "b": "B", "c": "C", "n1": "1", "n2": "2", "x*": "XYZ"}
    assert select(text, lambda name: meaning[name]) == set(chosen)


@pytest.mark.parametrize("text", ["", "a!", "a,,b", "n[1-", "n[1-2]*", "@g[1-2]", "n[1-99999999]"])
def test_what_cannot_be_selected_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        select(text, lambda name: [name])
