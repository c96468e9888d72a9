from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_hook.slurm.nodelist import expand_node_list
from cluster_run.errors import InputError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("node[08-11,20]", ["node08", "node09", "node10", "node11", "node20"]),
        ("gpu[1-2],cpu7", ["gpu1", "gpu2", "cpu7"]),
        ("rack[1-2]n[1-2]", ["rack1n1", "rack1n2", "rack2n1", "rack2n2"]),
        ("n[1-2].cluster.example", ["n1.cluster.example", "n2.cluster.example"]),
        ("node[1-2],node[2-3]", ["node1", "node2", "node3"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
    ],
)
def test_a_node_list_becomes_names_in_its_own_order(text: str, names: list[str]) -> None:
    assert list(expand_node_list(text)) == names


@pytest.mark.parametrize("text", ["", "(null)", "None assigned"])
def test_a_job_that_never_started_has_no_nodes(text: str) -> None:
    assert expand_node_list(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "node[1-",
        "node]1[",
        "node[3-1]",
        "node[a-b]",
        "node[]",
        "node[1-999999999]",
        "a[1-9999]b[1-9999]",
        "-oProxyCommand=touch",
        "a b",
        "node1,",
        "node[[1]]",
        "nodé",
        "node[١]",
    ],
)
def test_what_is_no_node_list_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        expand_node_list(text)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True), st.integers(1, 5))
def test_names_written_out_and_in_brackets_are_the_same(numbers: list[int], width: int) -> None:
    texts = [str(number).zfill(width) for number in numbers]
    assert expand_node_list(f"n[{','.join(texts)}]") == expand_node_list(
        ",".join(f"n{text}" for text in texts)
    )


@given(st.text(alphabet="node[]-,0123456789. \x00", max_size=30))
def test_any_text_gives_names_or_a_refusal(text: str) -> None:
    try:
        names = expand_node_list(text)
    except InputError:
        return
    assert all(name and not name.startswith("-") for name in names)
