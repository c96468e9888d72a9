"""docs/formats.md names every file, table and unit that the code reads, and none that it does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import cluster_analysis.sources
from cluster_analysis.discovery import ascend, legacy, prof, walk
from cluster_analysis.sources import counters, numbers
from cluster_analysis.sources.text import timeline_json
from cluster_analysis.sources.text.step_trace_csv import COLUMNS
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import SourceKind
from cluster_run import layout

DOCUMENT = Path(__file__).parents[1] / "docs" / "formats.md"
SOURCES = Path(next(iter(cluster_analysis.sources.__path__)))
#: What places of a name vary in, and an example of it.
PLACEHOLDERS = {
    "{device}": "0",
    "{model}": "2",
    "{iteration}": "7",
    "{pytorch,mindspore}": "pytorch",
    "{rank}": "7",
    "{id}": "7",
    "_*": "_data-parallel_1_8_7",
    ".N": ".7",
}
#: Patterns of all files that are read, beside those with fixed names.
PATTERNS = (
    ascend._INFO,
    ascend._DATABASE,
    *ascend.INPUT_PIPELINE.values(),
    *legacy.FILES.values(),
    *(pattern for _, pattern in prof.FILES.values()),
    timeline_json.NAME,
)
FIXED = {
    *ascend.OUTPUT_FILES.values(),
    "profiler_metadata.json",
    "host_ips_mapping.txt",
    layout.RANK_TABLE_NAME,
    "info.json.7",
}
_FILE = re.compile(r"[\w{},*-]+\.(?:csv|json|db|txt)(?:\.N)?")


@pytest.fixture(name="text")
def _text() -> str:
    return DOCUMENT.read_text()


def quoted(text: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", text)


def examples(name: str) -> list[str]:
    """Names that a name with placeholders stands for."""
    found = [name]
    for placeholder, value in PLACEHOLDERS.items():
        found += [one.replace(placeholder, value) for one in found if placeholder in one]
    digits = [one.replace("*", "20250101123456") for one in found if "*" in one]
    return found + digits + [one.replace("*", "0") for one in found if "*" in one]


def is_read(name: str) -> bool:
    return any(one in FIXED or any(pattern.match(one) for pattern in PATTERNS) for one in examples(name))


def test_every_file_with_a_fixed_name_is_in_the_document(text: str) -> None:
    missing = [name for name in ascend.OUTPUT_FILES.values() if f"`{name}`" not in text]
    assert missing == []


@pytest.mark.parametrize(
    "pattern",
    [*legacy.FILES.values(), ascend._INFO, ascend._DATABASE, *ascend.INPUT_PIPELINE.values()],
    ids=lambda one: one.pattern,
)
def test_every_family_of_files_is_in_the_document(text: str, pattern: re.Pattern[str]) -> None:
    names = {name for part in quoted(text) for name in [*_FILE.findall(part), part]}
    assert any(pattern.match(one) for name in names for one in examples(name))


def test_every_file_that_the_document_names_is_read(text: str) -> None:
    names = {name for part in quoted(text) for name in _FILE.findall(part.rpartition("/")[2])}
    assert len(names) > 20
    assert [name for name in sorted(names) if not is_read(name)] == []


def test_every_table_of_a_database_that_is_read_is_in_the_document(text: str) -> None:
    used = set()
    for path in (SOURCES / "db").glob("*.py"):
        code = path.read_text()
        used |= set(re.findall(r'"(CommAnalyzer\w+|StepTraceTime|[A-Z]+(?:_[A-Z]+)+|TASK)"', code))
    used -= {"AI_CORE", "RDMA"}
    assert {"TASK", "STEP_TIME", "CommAnalyzerMatrix", "META_DATA"} <= used
    assert [name for name in sorted(used) if name not in text] == []


def test_every_table_of_a_database_that_the_document_names_is_read(text: str) -> None:
    code = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    ours = {name for name in dir(schema) if name.isupper()}
    named = {
        one
        for part in quoted(text)
        for one in re.findall(r"\b(?:CommAnalyzer\w+|[A-Z]+(?:_[A-Z]+)+)\b", part)
    }
    named -= ours | {"ASCEND_PROFILER_OUTPUT"}
    assert len(named) > 8
    assert [name for name in sorted(named) if name not in code] == []


@pytest.mark.parametrize(
    "name", ["STEPS", "COLLECTIVES", "PACKETS", "LINKS", "OPERATORS", "APIS", "COUNTERS", "ITERATIONS"]
)
def test_every_table_that_readers_make_has_a_row(text: str, name: str) -> None:
    assert isinstance(getattr(schema, name), type(schema.STEPS))
    assert f"| `{name}` |" in text


def test_every_column_of_the_step_times_is_named(text: str) -> None:
    row = next(line for line in text.splitlines() if line.startswith("| `STEPS` | `step_trace_time.csv`"))
    for column in ("Step", *COLUMNS.values()):
        assert column in row or column.endswith("Exclude Receive)"), column
    assert "…Exclude Receive" in row


def test_every_kind_of_source_is_in_the_document(text: str) -> None:
    assert [kind for kind in get_args(SourceKind) if f"`{kind}`" not in text] == []


def test_units_are_those_of_the_code(text: str) -> None:
    assert (numbers.US_PER_MS, numbers.BYTES_PER_MB, numbers.BYTES_PER_KB) == (1e3, 1e6, 1e3)
    assert "MB (10^6 bytes)" in text
    assert "KB (1000 bytes)" in text
    assert (numbers.NS_PER_TICK, numbers.TICKS_PER_US) == (10, 100.0)
    assert "ticks of 10 ns" in text
    assert (counters._MIB, counters._KIB, counters._GIB) == (2.0**20, 2.0**10, 2.0**30)
    assert "MB (2^20) and KB (2^10)" in text
    assert f"up to {walk.MAX_DEPTH} levels down" in text
