"""Names in a run directory."""

from __future__ import annotations

import re
from pathlib import Path

from cluster_collect.live.host import captures
from cluster_collect.remote.programs import LOOK
from cluster_reduce import reduction
from cluster_run import layout
from cluster_run.ids import HostId


def test_a_hosts_files_lie_below_its_number() -> None:
    assert layout.host_directory(Path("run1"), HostId("3")) == Path("run1/cluster_profiler/3/profiler")


def test_the_names_are_those_that_other_tools_rely_on() -> None:
    assert layout.MAPPING_NAME == "host_ips_mapping.txt"
    assert layout.MANIFEST_NAME == "manifest.json"
    assert layout.RANK_TABLE_NAME.endswith(".json")
    assert (layout.PYTORCH_SUFFIX, layout.MINDSPORE_SUFFIX) == ("_ascend_pt", "_ascend_ms")


def test_programs_of_hosts_which_import_nothing_of_ours_spell_captures_as_we_do() -> None:
    assert captures.CAPTURE_SUFFIXES == layout.CAPTURE_SUFFIXES
    assert {captures.OUTPUT_NAME, reduction.OUTPUT_NAME.decode()} == {layout.PROFILER_OUTPUT_NAME}
    spelled = [*(f"*{suffix}" for suffix in layout.CAPTURE_SUFFIXES), f"{layout.PROF_PREFIX}*"]
    assert f" in {'|'.join(spelled)})" in LOOK.decode()
    assert re.findall(r"-name '(.+?)'", LOOK.decode()) == [*spelled, "profiler*"]
