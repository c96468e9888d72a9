"""parallel_strategy_{rank}.json of MindSpore: which ranks are which stage, and how the model is parallel.

`{"config": {"rankId", "stageId", "stageDevices": [{"dim": [{"size": "0"}, …]}]}, "graph": …}`:
the graph is not read.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import fact
from cluster_run.ids import ParallelSizes


class _Size(msgspec.Struct):
    size: str | int = ""


class _Stage(msgspec.Struct):
    dim: list[_Size] = msgspec.field(default_factory=list)


class _Config(msgspec.Struct):
    stages: list[_Stage] = msgspec.field(name="stageDevices", default_factory=list)


class _Strategy(msgspec.Struct):
    config: _Config


def read_strategy(path: Path, _: Remark) -> RankMetadata:
    """Return the number of stages and of ranks.

    Raises:
        BadFileError: it names no stage, or one of another size than the others.
    """
    stages = decode(read_bytes(path), _Strategy).config.stages
    sizes = {len(stage.dim) for stage in stages}
    if len(sizes) != 1 or not sizes <= set(range(1, 1_000_000)):
        raise BadFileError(fact("not_of_form", detail="stageDevices"))
    return RankMetadata(parallel=ParallelSizes(pp=len(stages)), world_size=len(stages) * sizes.pop())
