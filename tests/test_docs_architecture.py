"""ARCHITECTURE.md, CONTRIBUTING.md and the walk through the code name only files and names that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.calls import definitions, met_by
from tests.layers import ROOT, modules
from tools.renew_modules import PAGE, first_lines, reference

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
MAX_TERMS = 70
MAX_BYTES = 13_000


def section(text: str, title: str) -> str:
    """A section of a document up to the next one of its rank."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without their headings."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if not set(cells[0]) <= {"-", " "}][1:]


def defines(path: Path, symbol: str) -> bool:
    """Whether a module gives a meaning to a name: as a definition, or a value."""
    return bool(
        re.search(
            rf"^\s*(?:async )?(?:def|class) {symbol}\b|^\s*{symbol}\s*[:=]",
            path.read_text("utf-8"),
            re.MULTILINE,
        )
        or re.search(rf"\b{symbol}: ", path.read_text("utf-8"))
    )


OF_PACKAGES = (ROOT / "docs" / "packages.md").read_text("utf-8")
#: What the page says of each package, by its path.
PACKAGES = dict(re.findall(r"(?m)^\| `([\w/]+)/` \| (.*) \|$", OF_PACKAGES))
KEPT = (ROOT / "docs" / "lab" / "kept-libraries.md").read_text("utf-8")
WALK = (ROOT / "docs" / "from-file-to-verdict.md").read_text("utf-8")


def _whole(path: str) -> str:
    """The path of a module, of which the pages leave out `cluster_analysis/`."""
    return path if path.startswith(("cluster_", "tests/", "tools/")) else f"cluster_analysis/{path}"


PLACES = [
    (_whole(path), symbol)
    for path, symbols in re.findall(r"`([\w/]+\.py)` \(((?:`\w+`(?:, )?)+)\)", CONTRIBUTING + WALK)
    for symbol in re.findall(r"\w+", symbols)
]
TERMS = rows((ROOT / "docs" / "glossary.md").read_text("utf-8"))


def test_every_value_between_the_parts_is_defined_where_the_table_says() -> None:
    table = rows(section(ARCHITECTURE, "The values between the parts"))
    assert len(table) >= 20
    for first, *others in table:
        named = [ROOT / path for path in re.findall(r"`(cluster_[\w/]+\.py)`", others[-1])]
        named += [
            ROOT / "cluster_analysis" / path for path in re.findall(r"`(?!cluster_)([\w/]+\.py)`", others[-1])
        ]
        for value in re.findall(r"`([A-Z]\w+)`", first):
            assert any(defines(path, value) for path in named), value


def test_every_package_with_modules_has_a_row() -> None:
    with_modules = {
        str(path.parent.relative_to(ROOT)) for path in modules().values() if path.name != "__init__.py"
    }
    assert sorted(with_modules - set(PACKAGES)) == []


def test_every_row_is_a_directory_that_is_there() -> None:
    assert [path for path in PACKAGES if not (ROOT / path).is_dir()] == []


def test_the_list_of_modules_says_of_each_in_a_sentence_what_it_is_for() -> None:
    named = {str(path) for package in PACKAGES for path, _ in first_lines(ROOT / package)}
    assert named >= {str(path) for path in modules().values() if path.stat().st_size}
    told = [line for package in PACKAGES for _, line in first_lines(ROOT / package)]
    assert [line for line in told if not line.endswith((".", "?"))] == []
    assert PAGE.read_text("utf-8") == reference(), "python -m tools.renew_modules renews it"


def test_the_architecture_is_read_in_a_quarter_of_an_hour() -> None:
    assert len(ARCHITECTURE.encode()) < MAX_BYTES


def test_what_is_to_be_changed_is_where_the_table_says() -> None:
    assert len(PLACES) > 300
    assert [place for place in PLACES if not defines(ROOT / place[0], place[1])] == []


def test_most_changes_need_two_files_at_most_and_none_needs_many() -> None:
    tables = section(CONTRIBUTING, "To change X or to find it").split("\n### ")[1:]
    changes = [cells for table in tables for cells in rows(table)]
    needed = {what: len(re.findall(r"\.py`", " ".join(files))) for what, *files in changes}
    assert len(needed) == len(changes) >= 40
    assert min(needed.values()) >= 1
    assert max(needed.values()) <= 7
    assert sum(n_files > 2 for n_files in needed.values()) <= len(needed) / 6


def test_the_glossary_has_seventy_terms_at_most_each_with_a_module_that_is_there() -> None:
    assert 30 <= len(TERMS) <= MAX_TERMS
    names = [cells[0] for cells in TERMS]
    assert sorted(set(names)) == sorted(names)
    for name, _meaning, place in TERMS:
        for path in re.findall(r"`([\w/]+\.py)`", place):
            assert (ROOT / path).is_file(), name
        assert "`" in place, name


def test_every_name_that_the_documents_quote_is_one_of_the_code() -> None:
    code = (text for suffix in ("py", "c", "h", "j2", "js", "css", "sh", "toml") for text in _texts(suffix))
    known = {word for text in code for word in re.findall(r"\w+", text)}
    known |= {name for path in ROOT.glob("[!.]*/**/*") for name in (path.stem, path.name)}
    for text in (ARCHITECTURE, CONTRIBUTING, WALK, OF_PACKAGES):
        quoted = " ".join(re.findall(r"`([^`\n]+)`", text))
        # A beginning, as `add_…`, ends in an underscore: it is no whole word.
        assert set(re.findall(r"\b[a-z_]\w*[^\W_]\b", quoted)) - known == set()


def _texts(suffix: str) -> Iterator[str]:
    for path in (*ROOT.glob(f"*.{suffix}"), *ROOT.glob(f"[!.]*/**/*.{suffix}")):
        yield path.read_text("utf-8")


def test_every_file_that_the_documents_name_is_there() -> None:
    for text in (ARCHITECTURE, CONTRIBUTING, OF_PACKAGES):
        named = re.findall(r"`((?:cluster_\w+|tests|benchmarks|docs|tools|demo)/[\w/]+\.\w+)`", text)
        assert [path for path in named if not (ROOT / path).exists()] == []
    pieces = re.findall(r"`([a-z]\w*(?:/\w+)+)", " ".join(piece for piece, *_ in rows(KEPT)))
    assert len(pieces) > 10
    assert [one for one in pieces if not [*ROOT.glob(f"cluster_*/{one}*"), *ROOT.glob(f"{one}*")]] == []


#: What begins a way through the code, and a registry: modules that it names are asked for by their names.
_FROM_OUTSIDE = "the command line"
_REGISTRIES = {"FILES": "findings_json"}


class Row(NamedTuple):
    """A function of the page, in its module, and who calls it."""

    path: Path
    name: str
    callers: tuple[str, ...]


def _row(cells: list[str]) -> Row:
    found = re.fullmatch(r"`([\w/]+\.py)` \(`([\w.]+)`\)", cells[0])
    assert found is not None, cells[0]
    return Row(ROOT / _whole(found[1]), found[2], tuple(re.findall(r"`([\w.]+)`", cells[1])))


WALKED = [rows(f"\n{part}") for part in WALK.split("\n## ")[1:6]]
ROWS = [_row(cells) for section in WALKED for cells in section]
BY_NAME = {one.name: one for one in ROWS}


def _short(name: str, module: Path, caller: str) -> str:
    """What a caller calls a function by: its last name, or the module of a registry's entry."""
    return module.stem if caller in _REGISTRIES else name.rpartition(".")[2]


def _met_by(caller: str) -> dict[str, list[int]]:
    """When each name is met in what a row of the walk does."""
    row = BY_NAME[caller]
    return met_by(row.path, row.name)


def test_the_page_has_rows_for_the_collector_both_halves_of_the_analysis_the_hook_and_live() -> None:
    assert [len(section) > 10 for section in WALKED] == [True] * 5
    assert len(BY_NAME) == len(ROWS)


def test_each_function_of_the_page_is_there_and_is_called_by_the_one_that_the_page_says() -> None:
    assert [row for row in ROWS if row.name not in definitions(row.path)] == []
    said = [(caller, row) for row in ROWS for caller in row.callers]
    assert [(by, row) for by, row in said if _short(row.name, row.path, by) not in _met_by(by)] == []


def test_only_what_the_user_calls_has_no_caller() -> None:
    assert [one.name for one in ROWS if not one.callers] == ["carry_out", "run", "_drain", "follow_one"]
    assert WALK.count(_FROM_OUTSIDE) == 4


def test_rows_with_the_same_caller_stand_in_the_order_of_their_calls() -> None:
    reached: dict[str, int] = {}
    for one in ROWS:
        if one.callers:
            caller, now = one.callers[0], reached.get(one.callers[0], 0)
            places = _met_by(caller)[_short(one.name, one.path, caller)]
            reached[caller] = min((at for at in places if at >= now), default=-1)
            assert reached[caller] >= 0, f"{caller} calls {one.name} before the row above it"
