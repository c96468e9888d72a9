"""The simulator writes one job as text and as databases: both read back as its tables, to the last digit."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.detection.simulated_tables import tables
from cluster_analysis.cli import main as analyse
from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import PEER_VARIANT
from cluster_run.ids import Rank
from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate, write_run
from cluster_simulate.job.spec import Framework
from tests.analysis.copies import replace
from tests.analysis.one_rank import metadata_of, read_rank
from tests.simulate.jobs import VARIETY, VARIETY_OF_BOTH, specs
from tests.simulate.test_files import assert_same

TABLES = ("steps", "collectives", "links", "operators", "packets")
FRAMEWORKS: tuple[Framework, ...] = ("pt", "ms")
DRIFTING = "clocks that drift"
JOBS = {
    **VARIETY,
    DRIFTING: replace(VARIETY["overlap"], healthy=Healthy(drift_ppm=200.0, clock_sigma_ms=500.0)),
}
Tables = dict[Rank, RankTables]


def both_forms(root: Path, spec: JobSpec, framework: Framework) -> tuple[Tables, Tables]:
    """What reading makes of one job that was written as text, which is that job, and as databases."""
    job = simulate(spec, (), 11)
    found = []
    for form in ("text", "db"):
        write_run(job, root / form, form, framework)  # type: ignore[arg-type]
        capture = discover(root / form)
        assert {source.kind for source in capture.sources} == {f"ascend_{framework}/{form}"}
        of_ranks = {source.rank: read_rank(source) for source in capture.sources}
        assert all(one.problems == () for one in of_ranks.values())
        found.append(of_ranks)
    text, database = found
    own = tables(job, framework)
    assert_same(text, own)
    for rank, one in text.items():
        assert metadata_of(one).groups == metadata_of(own[rank]).groups
        assert metadata_of(one).parallel == metadata_of(own[rank]).parallel
    assert text.keys() == database.keys()
    return text, database


def rows(of_rank: RankTables, name: str) -> list[dict[str, object]]:
    """What was measured: whom each message is for is told by databases alone."""
    every = [row for row in getattr(of_rank, name).to_pylist() if row.get("variant") != PEER_VARIANT]
    return sorted(every, key=lambda row: [str(value) for value in row.values()])


def assert_equal(text: Tables, database: Tables) -> None:
    for rank in text:
        for table in TABLES:
            assert rows(text[rank], table) == rows(database[rank], table), (rank, table)
        both = metadata_of(text[rank]), metadata_of(database[rank])
        assert both[0].parallel == both[1].parallel
        assert set(both[0].groups) == set(both[1].groups)


@pytest.mark.many
@pytest.mark.parametrize(("name", "framework"), [*VARIETY_OF_BOTH, (DRIFTING, "pt")])
def test_steps_operators_links_kernels_and_packets_are_equal_in_both_forms(
    tmp_path: Path, name: str, framework: Framework
) -> None:
    text, database = both_forms(tmp_path, JOBS[name], framework)
    assert_equal(text, database)
    empty = {table for table in TABLES for one in text.values() if not getattr(one, table).num_rows}
    assert empty <= ({"collectives", "links", "packets"} if name == "alone" else set())


@pytest.mark.slow
@settings(max_examples=3)
@given(spec=specs(), framework=st.sampled_from(FRAMEWORKS))
def test_any_job_gives_equal_tables_in_both_forms(spec: JobSpec, framework: Framework) -> None:
    with tempfile.TemporaryDirectory() as root:
        assert_equal(*both_forms(Path(root), spec, framework))


def _without_clock(finding: dict[str, Any]) -> None:
    """Take away what only databases record: the clock of the AI cores, and what is said of it."""
    assert finding["evidence"].pop()["metric"] == "aicore_frequency_mhz"
    assert finding["facts"].pop()["kind"] == "clock_below_peers"
    finding["summary"], _, of_clock = finding["summary"].partition(" Its AI cores ran at ")
    assert of_clock.endswith("the low clock makes it slow.")
    assert "why the clock of rank 5 (host 2) is low" in finding["next_check"]
    finding["next_check"] = CLOCK_NOT_KNOWN


#: What to do next where no file tells the clock.
CLOCK_NOT_KNOWN = (
    "Compare AI Core frequency, temperature and power limit of rank 5 (host 2) with its neighbours."
)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_findings_are_the_same_in_both_forms(tmp_path: Path, framework: Framework) -> None:
    job = simulate(VARIETY["plain"], [parse_scenario("slow_rank:1.3@5")], 11)
    documents = []
    for form in ("text", "db"):
        write_run(job, tmp_path / form, form, framework)  # type: ignore[arg-type]
        assert analyse([str(tmp_path / form), "--output", str(tmp_path / "out"), "--no-report", "-q"]) == 0
        document = json.loads((tmp_path / "out/findings.json").read_bytes())
        assert document["run"].pop("sources") == [f"ascend_{framework}/{form}"]
        assert document["run"].pop("name") == form
        # They lie in two places and were collected as two sets of files.
        for header in ("path", "captured", "command", "mapping"):
            document["run"].pop(header)
        if form == "db":
            _without_clock(document["findings"][0])
        documents.append(document)
    assert documents[0] == documents[1]
    assert documents[0]["findings"][0]["id"] == "slow_rank-5"
