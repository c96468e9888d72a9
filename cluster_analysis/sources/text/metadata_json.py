"""What a capture says about itself: profiler_metadata.json and profiler_info_{rank}.json.

Two forms of profiler_metadata.json exist: with `distributed_args` and `parallel_group_info`, and with
`ENV_VARIABLES` alone. Both are fine; what is missing stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.names import as_group_hash
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables.model import DeclaredGroup, RankMetadata
from cluster_run.facts import fact
from cluster_run.findings import ParallelSizes
from cluster_run.ids import Rank

_ARGUMENT_OF_SIZE = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "dp": "data_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
}
#: No size or rank of a job has more digits; a damaged one may have thousands.
_MAX_DIGITS = 18
#: Groups whose ranks are held once for all of their members, which are mostly read one after the other.
_MOST_SHARED = 1024
_VERSIONS = ("torch_npu_version", "cann_version", "ms_version")


class _Group(msgspec.Struct):
    group_name: str = ""
    group_rank: object = None
    global_ranks: list[int] = []


class _Metadata(msgspec.Struct):
    distributed_args: dict[str, object] | None = None
    parallel_group_info: dict[str, _Group] | None = None


class _Experimental(msgspec.Struct):
    level: str | None = msgspec.field(name="_profiler_level", default=None)


class _Config(msgspec.Struct):
    experimental_config: _Experimental | None = None


class _Info(msgspec.Struct):
    config: _Config | None = None
    torch_npu_version: str | None = None
    cann_version: str | None = None
    ms_version: str | None = None
    profiler_level: str | None = None


_METADATA: msgspec.json.Decoder[_Metadata] = msgspec.json.Decoder(_Metadata)
_INFO: msgspec.json.Decoder[_Info] = msgspec.json.Decoder(_Info)


def read_metadata(path: Path) -> RankMetadata:
    """Read profiler_metadata.json.

    Raises:
        BadFileError: it is not such a file.
    """
    return parse_metadata(read_bytes(path))


def parse_metadata(content: bytes) -> RankMetadata:
    """Parse the content of profiler_metadata.json; see `read_metadata`."""
    document = decode(content, _METADATA)
    arguments = document.distributed_args or {}
    sizes = {name: _whole(arguments.get(argument)) for name, argument in _ARGUMENT_OF_SIZE.items()}
    groups = tuple(
        DeclaredGroup(as_group_hash(key), info.group_name, _shared(tuple(map(Rank, info.global_ranks))), key)
        for key, info in (document.parallel_group_info or {}).items()
    )
    world_size = _whole(arguments.get("world_size"))
    named = sorted(
        {rank for one in groups for rank in one.global_ranks} | ({world_size - 1} if world_size else set())
    )
    if named and not 0 <= named[0] <= named[-1] < numbers.MAX_RANKS:
        raise BadFileError(fact("impossible_rank", named=named[0] if named[0] < 0 else named[-1]))
    return RankMetadata(
        parallel=ParallelSizes(**sizes),
        world_size=world_size,
        groups=groups,
        own_rank=_own_rank(arguments.get("rank"), (document.parallel_group_info or {}).values()),
    )


@lru_cache(_MOST_SHARED)
def _shared(ranks: tuple[Rank, ...]) -> tuple[Rank, ...]:
    """Return the first tuple that is equal: each rank of a job lists all of them, and its groups."""
    return ranks


def _own_rank(said: object, groups: Iterable[_Group]) -> Rank | None:
    """Return the rank that the arguments and the place in every group agree on; None where they do not."""
    ranks = {
        group.global_ranks[group.group_rank]
        for group in groups
        if isinstance(group.group_rank, int) and 0 <= group.group_rank < len(group.global_ranks)
    }
    if isinstance(said, int) and not isinstance(said, bool):
        ranks.add(said)
    return Rank(ranks.pop()) if len(ranks) == 1 and 0 <= min(ranks) < numbers.MAX_RANKS else None


def read_profiler_info(path: Path) -> tuple[str, Mapping[str, str]]:
    """Return the profiling level and the versions of the software from profiler_info_{rank}.json.

    Raises:
        BadFileError: it is not such a file.
    """
    document = decode(read_bytes(path), _INFO)
    experimental = document.config.experimental_config if document.config else None
    level = (experimental.level if experimental else None) or document.profiler_level or ""
    versions = {name: getattr(document, name) for name in _VERSIONS if getattr(document, name)}
    return level, versions


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isdecimal():
        return int(value) if len(value) <= _MAX_DIGITS else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
