"""What operators carried over each transport, read from entries that are mostly zeros."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.carried import ABSENT, BadEntryError, carried
from cluster_analysis.sources.text.communication_json import read_communication
from tests.analysis.said import refused
from tests.analysis.sources.builders import OPS, communication_json

ZERO = '{"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Size Distribution": {}}'
FIGURES = st.sampled_from([0, 0.0, 3, 0.25, 1e9])
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "Transit Size(MB)": st.one_of(st.none(), FIGURES),
        "Transit Time(ms)": st.one_of(st.none(), FIGURES),
        "Bandwidth(GB/s)": FIGURES,
        "Size Distribution": st.dictionaries(
            st.sampled_from(["1", "1.0", "2.5"]), st.tuples(FIGURES, FIGURES), max_size=2
        ),
    },
)


@given(st.lists(st.one_of(st.none(), st.just(json.loads(ZERO)), ENTRIES), max_size=8))
def test_every_entry_gives_its_own_figures_whatever_letters_zero_is_written_in(entries: list) -> None:
    texts = [ABSENT if entry is None else msgspec.Raw(json.dumps(entry).encode()) for entry in entries]
    read = carried(texts)
    for name, values in (("Transit Size(MB)", read.size_mb), ("Transit Time(ms)", read.time_ms)):
        wanted = [None if entry is None else entry.get(name) for entry in entries]
        assert [None if math.isnan(value) else value for value in values] == wanted
    packets = [
        (place, size, [float(count), float(time)])
        for place, entry in enumerate(entries)
        for size, (count, time) in ((entry or {}).get("Size Distribution") or {}).items()
    ]
    places, figures = read.packet_places.tolist(), read.packet_figures.tolist()
    assert list(zip(places, read.packet_sizes, figures, strict=True)) == packets


@pytest.mark.parametrize("first", [ZERO, '{"Transit Size(MB)": 1.5}'])
def test_a_bad_entry_is_found_among_good_ones(first: str) -> None:
    texts = [first, ZERO, ZERO, '{"Transit Size(MB)": "much"}', ZERO]
    with pytest.raises(BadEntryError, match="Expected `float") as caught:
        carried([msgspec.Raw(text.encode()) for text in texts])
    assert caught.value.place == 3


def test_a_transport_of_another_form_names_its_operator_and_its_place(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    document = communication_json({"step50": OPS})
    text = json.dumps(document).replace('"Transit Size(MB)": 0', '"Transit Size(MB)": [0]', 1)
    path.write_text(text)
    offset = text.index('{"Transit Size(MB)": [0]')
    with refused(rf"HCCS of 'hcom_\w+@\d+', which begins at byte {offset}: "):
        read_communication(path, 3, None, [].append)
