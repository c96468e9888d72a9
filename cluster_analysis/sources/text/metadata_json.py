"""Metadata of a capture: profiler_metadata.json and profiler_info_{rank}.json.

Two forms of profiler_metadata.json exist: with `distributed_args` and `parallel_group_info`, and with
`ENV_VARIABLES` alone. Both are fine; what is missing stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import as_group_hash
from cluster_analysis.tables.model import DeclaredGroup, RankMetadata
from cluster_run.facts import fact
from cluster_run.ids import MAX_RANKS, ParallelSizes, Rank

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


def read_metadata(path: Path) -> RankMetadata:
    """Read profiler_metadata.json."""
    return parse_metadata(read_bytes(path))


def parse_metadata(content: bytes) -> RankMetadata:
    """Parse the content of profiler_metadata.json; see `read_metadata`."""
    document = decode(content, _Metadata)
    arguments = document.distributed_args or {}
    sizes = {name: _whole(arguments.get(argument)) for name, argument in _ARGUMENT_OF_SIZE.items()}
    declared = document.parallel_group_info or {}
    groups = tuple(
        DeclaredGroup(as_group_hash(key), one.group_name, _shared(tuple(one.global_ranks)), key)
        for key, one in declared.items()
    )
    world_size = _whole(arguments.get("world_size"))
    named = [one.global_ranks for one in declared.values() if one.global_ranks]
    ends = [*map(min, named), *map(max, named), *([world_size - 1] if world_size else [])]
    if ends and not 0 <= min(ends) <= max(ends) < MAX_RANKS:
        raise BadFileError(fact("impossible_rank", named=min(ends) if min(ends) < 0 else max(ends)))
    return RankMetadata(
        parallel=ParallelSizes(**sizes),
        world_size=world_size,
        groups=groups,
        own_rank=_own_rank(arguments.get("rank"), declared.values()),
    )


@lru_cache(_MOST_SHARED)
def _shared(ranks: tuple[int, ...]) -> tuple[Rank, ...]:
    """Return the ranks of a group; those of a job list the same ones, which are held once."""
    return tuple(map(Rank, ranks))


def _own_rank(said: object, groups: Iterable[_Group]) -> Rank | None:
    """Return the rank that the arguments and the place in every group agree on; None where they do not."""
    ranks: set[int] = {
        group.global_ranks[group.group_rank]
        for group in groups
        if isinstance(group.group_rank, int) and 0 <= group.group_rank < len(group.global_ranks)
    }
    if isinstance(said, int) and not isinstance(said, bool):
        ranks.add(said)
    return Rank(ranks.pop()) if len(ranks) == 1 and 0 <= min(ranks) < MAX_RANKS else None


def read_profiler_info(path: Path) -> tuple[str, Mapping[str, str]]:
    """Return the profiling level and the versions of the software from profiler_info_{rank}.json."""
    document = decode(read_bytes(path), _Info)
    experimental = document.config.experimental_config if document.config else None
    level = (experimental.level if experimental else None) or document.profiler_level or ""
    versions = {name: getattr(document, name) for name in _VERSIONS if getattr(document, name)}
    return level, versions


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isdecimal():
        return int(value) if len(value) <= _MAX_DIGITS else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


#: The environment variables that a capture records, here or in a database.
ENVIRONMENT_KEY = "ENV_VARIABLES"


class _Recorded(msgspec.Struct):
    variables: dict[str, object] = msgspec.field(name=ENVIRONMENT_KEY, default_factory=dict)


def read_environment(path: Path, rank: int, _: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of profiler_metadata.json; None where it records no variable."""
    content = read_bytes(path)
    # Most record none. The reader of the rest reports whether the file is damaged.
    if ENVIRONMENT_KEY.encode() not in content and b"\\" not in content:
        return None
    return _table(rank, decode(content, _Recorded).variables)


def environment_of(rank: int, text: bytes) -> pa.Table | None:
    """Return ENVIRONMENT of a JSON object of variables; None where it has none."""
    return _table(rank, decode(text, dict[str, object]))


def _table(rank: int, variables: Mapping[str, object]) -> pa.Table | None:
    if not variables:
        return None
    names = sorted(variables)
    values = [str(variables[name]) for name in names]
    return schema.rows(schema.ENVIRONMENT, rank, variable=names, value=values)
