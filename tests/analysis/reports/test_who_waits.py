import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.reports.page.replayed import MAX_ENDS, build_who_waits
from tests.analysis.reports import builder

N_HOSTS = 3 * MAX_ENDS
RANKS = np.arange(8 * N_HOSTS)


def _who_waits(for_rank: np.ndarray, wait_us: np.ndarray) -> tuple[dict, list[tuple[str, str, float]]]:
    """The header, and cells as (who waits, for whom, µs a rank); '' is the network."""
    result = builder.healthy(builder.Job(tp=8, dp=N_HOSTS, pp=1, n_steps=1))
    waits = pa.table({"rank": RANKS, "for_rank": pa.array(for_rank, from_pandas=True), "wait_us": wait_us})
    lanes = pa.table({"step": [10]})
    picture = build_who_waits(builder.with_tables(result, {"waits": waits, "lanes": lanes}))
    header = picture.header["who_waits"]
    cells = [
        (header["rows"][row], "" if column < 0 else header["columns"][column], us)
        for row, column, us in zip(*picture.columns.values(), strict=True)
    ]
    return header, cells


def test_of_many_hosts_those_that_wait_most_and_those_that_are_waited_for_most_are_drawn():
    for_rank = (RANKS // 8 + 1) % N_HOSTS * 8.0
    for_rank[::2] = 8 * 300  # all hosts wait for one
    wait_us = np.where(RANKS // 8 >= N_HOSTS - 10, 50.0, 1.0)
    header, cells = _who_waits(for_rank, wait_us)
    assert (len(header["rows"]), len(header["columns"]), header["of"]) == (MAX_ENDS, MAX_ENDS, N_HOSTS)
    assert set(map(str, range(N_HOSTS - 9, N_HOSTS + 1))) <= set(header["rows"])
    assert "301" in header["columns"]
    told = {who: us for who, whom, us in cells if whom == "301"}
    assert told.keys() == set(header["rows"])  # whoever is drawn shows that it waits for the one
    assert told[str(N_HOSTS)] == pytest.approx(25.0)  # half of its ranks, 50 µs each


def test_waiting_for_the_network_is_drawn_of_whoever_waits_most():
    header, cells = _who_waits(np.full(len(RANKS), np.nan), 1.0 + RANKS)
    assert header["rows"] == [str(host) for host in range(N_HOSTS - MAX_ENDS + 1, N_HOSTS + 1)]
    assert {whom for _, whom, _ in cells} == {""}
    assert len(cells) == MAX_ENDS
