"""Who sits where, by signs that may lie: which of them is believed, and that no wrong host is ever named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.tables.model import Capture, RankMetadata
from cluster_analysis.topology.hosts import seated
from cluster_run.ids import DeviceId, HostId, Rank


def seats(
    names: Sequence[str] = (),
    devices: Sequence[int | None] = (),
    machines: Sequence[tuple[str, str]] = (),
    folders: Mapping[int, str] | None = None,
) -> Capture:
    """Ranks 0, 1, … with these signs."""
    n = max(len(names), len(devices), len(machines), len(folders or ()))
    padded = [*devices, *[None] * (n - len(devices))]
    pairs = [*machines, *[("", "")] * (n - len(machines))]
    metadata = {
        Rank(rank): RankMetadata(
            host_uid=pairs[rank][0],
            host_name=pairs[rank][1],
            device=None if padded[rank] is None else DeviceId(padded[rank]),
        )
        for rank in range(n)
    }
    capture = Capture(
        (),
        tuple(map(Rank, range(n))),
        hosts={Rank(rank): HostId(host) for rank, host in (folders or {}).items()},
        names={Rank(rank): name for rank, name in enumerate(names)},
        is_placed=folders is not None,
    )
    return seated(capture, metadata)


def hosts(found: Capture) -> list[str | None]:
    return [found.hosts.get(rank) for rank in found.expected_ranks]


def told(found: Capture) -> list[str]:
    return [one.kind for one in found.notes]


def test_names_of_captures_are_those_of_hosts_where_nothing_speaks_against_it() -> None:
    found = seats(["nodeB", "nodeB", "nodeA"], [0, 1, 0])
    assert (hosts(found), told(found)) == (["1", "1", "2"], [])
    assert found.addresses == {"1": "nodeB", "2": "nodeA"}


def test_one_card_a_host_has_as_many_names_as_ranks() -> None:
    assert hosts(seats(["alpha", "beta", "gamma"], [0, 0, 0])) == ["1", "2", "3"]


def test_names_that_end_in_their_rank_are_those_of_processes() -> None:
    found = seats([f"dp{rank // 2}_tp{rank % 2}_rank{rank}" for rank in range(8)], [0, 1, 2, 3] * 2)
    assert hosts(found) == [*"11112222"]
    assert told(found) == ["hosts_by_devices"]
    assert found.addresses == {}


def test_machines_of_one_name_are_told_apart_by_devices_that_start_again() -> None:
    assert hosts(seats(["localhost.localdomain"] * 6, [0, 1, 2, 0, 1, 2])) == [*"111222"]


@pytest.mark.parametrize(
    ("names", "devices"),
    [
        ([f"worker_rank{rank}" for rank in range(8)], range(8)),  # one host of eight, or pods of one
        ([f"pod-{name}" for name in "abcd"], range(4)),
        (["worker"] * 4, [0, 0, 0, 0]),  # processes that each see one device
        (["worker"] * 5, [0, 1, 2, 0, 1]),  # hosts would not be alike
    ],
)
def test_where_no_sign_is_left_hosts_are_unknown_and_that_is_told(
    names: list[str], devices: Sequence[int]
) -> None:
    found = seats(names, list(devices))
    assert found.hosts == {}
    assert told(found) == ["hosts_unknown"]


def test_captures_without_any_name_or_device_have_no_host() -> None:
    assert seats(["", ""]).hosts == {}


def test_what_databases_name_goes_before_names_of_captures() -> None:
    found = seats(["w_rank0", "w_rank1", "w_rank2"], [0, 0, 1], [("7", "b"), ("5", "a"), ("7", "b")])
    assert (hosts(found), told(found)) == (["1", "2", "1"], [])
    assert found.addresses == {"1": "b", "2": "a"}


def test_two_machines_of_one_name_have_two_unique_ids() -> None:
    machines = [("1", "localhost"), ("1", "localhost"), ("2", "localhost"), ("2", "localhost")]
    assert hosts(seats(["localhost"] * 4, [0, 1, 0, 1], machines)) == [*"1122"]


def test_an_id_that_puts_a_device_on_a_host_twice_is_not_believed() -> None:
    found = seats(["a", "a", "b", "b"], [0, 1, 0, 1], [("7", "pod")] * 4)
    assert hosts(found) == [*"1122"]


def test_a_run_directory_is_believed_before_all_else() -> None:
    folders = {0: "2", 1: "2", 2: "1"}
    assert seats(["x", "y", "z"], [0, 0, 0], folders=folders).hosts == folders


def test_two_hosts_of_a_run_that_are_one_machine_by_their_files_are_one() -> None:
    found = seats(devices=[0, 1, 2, 3], machines=[("7", "n")] * 4, folders={0: "1", 1: "1", 2: "2", 3: "2"})
    assert (hosts(found), told(found)) == ([*"1111"], ["hosts_are_one"])


def test_two_containers_with_the_same_devices_stay_two_hosts() -> None:
    found = seats(devices=[0, 1, 0, 1], machines=[("7", "n")] * 4, folders={0: "1", 1: "1", 2: "2", 3: "2"})
    assert (hosts(found), told(found)) == ([*"1122"], [])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "w0", "w1", ""]), st.integers(0, 3), st.sampled_from(["", "m", "n"])
        ),
        min_size=1,
        max_size=12,
    )
)
def test_no_host_ever_has_a_device_twice(signs: list[tuple[str, int, str]]) -> None:
    found = seats([one[0] for one in signs], [one[1] for one in signs], [("", one[2]) for one in signs])
    places = [(host, signs[rank][1]) for rank, host in found.hosts.items()]
    assert len(set(places)) == len(places)
    assert found.hosts.keys() in (set(), {Rank(rank) for rank in range(len(signs))})
