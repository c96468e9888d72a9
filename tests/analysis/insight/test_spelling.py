"""Keys and ratios of many rows at once are those of one row at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cluster_analysis.insight.naming import all_safe, op_key, op_keys, safe
from cluster_analysis.insight.totals import ratio, ratios
from cluster_analysis.sources.names import split_keys

numbers = st.one_of(st.floats(0.0, 1e12), st.integers(0, 40).map(lambda n: n / 20_000), st.just(0.0))


def test_only_names_that_insight_refuses_are_changed() -> None:
    written = pa.array(["hcom_send__1_0_1@17", "a|b@17", "alone", "x" * 600 + "@5", 'say "so"@é'])
    names, groups = split_keys(written)
    keys = [one.decode() for one in op_keys(written, names, groups.cast(pa.string())).to_pylist()]
    pairs = zip(names.to_pylist(), groups.to_pylist(), strict=True)
    assert keys == [op_key(name, group) for name, group in pairs]
    assert keys[:3] == ["hcom_send__1_0_1@17", "a_b@17", "alone@unknown"]


@settings(deadline=None)
@example(["a" * 501])
@example(["a" * 500, "a|b"])
@example([])
@given(st.lists(st.text(max_size=8)))
def test_one_look_tells_whether_any_name_is_changed(names: list[str]) -> None:
    assert all_safe(names) == all(safe(name) == name for name in names)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([(1.0, 5e-324)])
@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_many_ratios_are_rounded_as_each_one_is(pairs: list[tuple[float, float]]) -> None:
    one, other = (np.array([pair[side] for pair in pairs], np.float64) for side in (0, 1))
    assert ratios(one, other).tolist() == [ratio(*pair) for pair in pairs]


def test_a_ratio_half_way_between_two_roundings_is_rounded_as_python_does() -> None:
    halves = np.arange(1, 4000, 2) / 20_000
    assert ratios(halves, np.ones(len(halves))).tolist() == [ratio(one, 1.0) for one in halves.tolist()]
