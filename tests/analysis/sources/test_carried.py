"""What operators carried over each transport, read from entries that are mostly zeros."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.compiled.reader import CHOICE
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.communication_json import read_communication
from tests.analysis.said import refused
from tests.analysis.sources.builders import OPS, communication_json

FIGURES = st.sampled_from([0, 0.0, 3, 0.25, 1e9])
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "Transit Size(MB)": st.one_of(st.none(), FIGURES),
        "Transit Time(ms)": st.one_of(st.none(), FIGURES),
        "Bandwidth(GB/s)": FIGURES,
        "Size Distribution": st.dictionaries(
            st.sampled_from(["1", "1.5", "2.5"]), st.tuples(FIGURES, FIGURES), max_size=2
        ),
    },
)


@given(entries=st.lists(st.one_of(st.none(), ENTRIES), max_size=6))
def test_every_entry_gives_its_own_figures(tmp_path_factory: pytest.TempPathFactory, entries: list) -> None:
    path = tmp_path_factory.mktemp("job") / "communication.json"
    operators = {
        f"hcom_broadcast__1_{at}_1@1": {
            "Communication Time Info": {"Start Timestamp(us)": 1764246877000000.5, "Elapse Time(ms)": 1},
            "Communication Bandwidth Info": {} if entry is None else {"RDMA": entry},
        }
        for at, entry in enumerate(entries)
    }
    path.write_text(json.dumps({"step1": {"collective": operators}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHOICE, "python")
        read = read_communication(path, 0, None, unheard)
    for name, column, factor in (
        ("Transit Size(MB)", "rdma_bytes", 1e6),
        ("Transit Time(ms)", "rdma_us", 1e3),
    ):
        given_values = [None if entry is None else entry.get(name) for entry in entries]
        wanted = [None if value is None else value * factor for value in given_values]
        assert read.collectives[column].to_pylist() == wanted
    packets: dict[float, list[float]] = {}
    for entry in entries:
        for size, (count, time) in ((entry or {}).get("Size Distribution") or {}).items():
            counts, times = packets.get(float(size), [0, 0.0])
            packets[float(size)] = [counts + count, times + time]
    found = {row["packet_bytes"] / 1e6: row["n_packets"] for row in read.packets.to_pylist()}
    assert found == {size: round(count) for size, (count, _) in packets.items()}


def test_a_transport_of_another_form_names_its_step_and_what_is_wrong_there(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    document = communication_json({"step50": OPS})
    text = json.dumps(document).replace('"Transit Size(MB)": 0', '"Transit Size(MB)": [0]', 1)
    path.write_text(text)
    with refused(r"in 'step50', which begins at byte \d+: .*Transit Size\(MB\): list .*hcom_"):
        read_communication(path, 3, None, [].append)
