"""Every folder of real captures is read, and every output of another tool there is compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.real.captures import DATA, needs_captures, read

pytestmark = needs_captures
FOLDERS = {
    "qwen3-4ranks-pt": ("ascend_pt/text", [0, 1, 2, 3]),
    "gpt3-16ranks-pt": ("ascend_pt/text", [0, 1]),
    "resnet-2of8-pt-text": ("ascend_pt/text", [0, 1]),
    "resnet-2of8-pt-db": ("ascend_pt/db", [0, 1]),
    "mindspore-r1-4ranks": ("mindspore_r1/text", [0, 1, 2, 3]),
    "bytedance-ST/batch": ("ascend_pt/text", [0, 1, 2, 3, 4, 5, 6, 7]),
    "bytedance-ST/mixed": ("ascend_pt/text", [0, 1, 2, 3, 4, 5, 6, 7]),
}
#: The test module that compares with each folder of outputs that other tools made.
REFERENCES = {
    "peer-output/qwen3-4ranks-pt": "test_qwen3.py",
    "gpt3-16ranks-pt/reference_cluster_analysis_output": "test_gpt3.py",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_is_read_whole_and_without_a_problem(name: str) -> None:
    kind, ranks = FOLDERS[name]
    capture, tables = read(name)
    assert capture.problems == ()
    assert sorted(tables) == ranks
    assert {source.kind for source in capture.sources} == {kind}
    for one in tables.values():
        assert one.steps.num_rows > 0
        assert one.collectives.num_rows > 0
        assert one.links.num_rows > 0


def test_no_folder_is_left_out() -> None:
    there = {path.name for path in DATA.iterdir() if path.is_dir()}
    assert there == {name.partition("/")[0] for name in FOLDERS} | {"peer-output"}


def test_every_output_of_another_tool_is_compared_with() -> None:
    outputs = {
        path.relative_to(DATA)
        for path in DATA.rglob("*")
        if path.is_file() and path.name.startswith(("cluster_", "communication_group"))
    }
    assert {str(path.parent) for path in outputs} == set(REFERENCES)
    for path in outputs:
        module = Path(__file__).parent / REFERENCES[str(path.parent)]
        assert path.name in module.read_text(), f"{module.name} does not compare with {path}"
