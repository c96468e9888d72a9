"""Where things lie in a run directory: every name is spelled here and nowhere else.

run1/
├── hccl.json                    the rank table; any name that ends in .json
├── host_ips_mapping.txt         "<server_id> <N>", N from 1 in inventory order
├── manifest.json                written last
└── cluster_profiler/<N>/profiler/…
"""

from __future__ import annotations

import re
from pathlib import Path

from cluster_run.ids import HostId

MANIFEST_NAME = "manifest.json"
MAPPING_NAME = "host_ips_mapping.txt"
RANK_TABLE_NAME = "hccl.json"
#: There as long as a collection has not ended, and after one that was cut off.
JOURNAL_NAME = ".cluster-collect.journal"
PROFILER_TREE_NAME = "cluster_profiler"
HOST_PROFILER_NAME = "profiler"
ANALYSIS_OUTPUT_NAME = "cluster_analysis_output"
FINDINGS_NAME = "findings.json"
REPORT_NAME = "report.html"
TABLES_NAME = "tables"
TIMELINE_NAME = "trace.json.gz"
#: Output of `--all-parts`: a folder for each part, and their list.
PARTS_NAME = "parts"
PARTS_INDEX_NAME = "parts.json"
COMPARISON_NAME = "comparison.json"
TRUTH_NAME = "truth.json"
#: The environment variable that names the fleet's database where no option does.
FLEET_VARIABLE = "CLUSTER_FLEET"

#: Directory name endings of PyTorch and MindSpore captures, and how those of CANN itself begin.
PYTORCH_SUFFIX, MINDSPORE_SUFFIX = CAPTURE_SUFFIXES = ("_ascend_pt", "_ascend_ms")
PROF_PREFIX = "PROF_"
#: One of the endings, as a regular expression.
CAPTURE_END = f"(?:{'|'.join(CAPTURE_SUFFIXES)})"
#: The directory of a capture that holds its parsed files.
PROFILER_OUTPUT_NAME = "ASCEND_PROFILER_OUTPUT"
#: Written into it when all is parsed, by torch_npu since June 2026.
PARSED_MARK_NAME = "analyse.done"
#: A capture without that mark is no longer being parsed if it did not change for this time.
PARSER_RESTS_S = 60.0
#: Ends of names of what is packed: folders by tar, folders or files, and single files.
_TARS, _EITHER, _FILES = "tar|tgz|tzst", "zip|7z|rar", "gz|bz2|xz|zst"
#: What may hold a folder, as a regular expression.
ARCHIVE = rf"\.({_TARS}|{_EITHER}|tar\.({_FILES}))$"
_PACKED = re.compile(rf"(\.tar)?\.({_FILES}|{_EITHER})$|\.({_TARS})$")


def host_directory(run: Path, host: HostId) -> Path:
    """Return the directory that holds what was collected from `host`."""
    return run / PROFILER_TREE_NAME / host / HOST_PROFILER_NAME


def unpacked_name(name: str) -> str:
    """Return the name of what was packed; the name itself of all that is not packed."""
    return _PACKED.sub("", name)
