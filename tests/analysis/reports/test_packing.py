import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cluster_analysis.reports.page.packing import pack, unpack
from cluster_run.errors import InputError

COLUMNS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.one_of(
        hnp.arrays(np.float32, st.integers(0, 40)),
        hnp.arrays(np.int32, st.integers(0, 40)),
        hnp.arrays(np.uint8, st.integers(0, 40)),
    ),
    max_size=6,
)


@given(columns=COLUMNS, text=st.text(max_size=30))
def test_what_is_packed_comes_back(columns, text):
    header, read = unpack(pack({"text": text}, columns))

    assert header == {"text": text}
    assert list(read) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(read[name], values)


def test_text_of_a_payload_cannot_end_its_element():
    assert "<" not in pack({"name": "</script><script>alert(1)</script>"}, {})


def test_an_unknown_type_is_refused_with_its_name():
    with pytest.raises(InputError, match="column time has type float64"):
        pack({}, {"time": np.zeros(3)})


def test_a_nan_in_the_header_is_refused():
    with pytest.raises(InputError, match="report header"):
        pack({"value": float("nan")}, {})
