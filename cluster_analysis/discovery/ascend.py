"""Captures of PyTorch and MindSpore 2.x: `{worker}_{time}_ascend_pt` and `…_ascend_ms` directories.

The rank is in the name of profiler_info_{rank}.json or of the database, else in what they or the metadata
hold; it is never assumed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from cluster_analysis.discovery.found import Found, as_rank, is_file, public_name
from cluster_analysis.discovery.legacy import INPUT_PIPELINE
from cluster_analysis.sources.columns.place import original_name
from cluster_analysis.sources.db.profiler_db import read_own_rank
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.sources.text.metadata_json import read_metadata
from cluster_analysis.tables.model import SourceKind
from cluster_run import layout
from cluster_run.facts import fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

#: Name of the file for each role, below ASCEND_PROFILER_OUTPUT.
OUTPUT_FILES = {
    "step_trace": "step_trace_time.csv",
    "communication": "communication.json",
    "matrix": "communication_matrix.json",
    "op_statistic": "op_statistic.csv",
    "kernel_details": "kernel_details.csv",
    "api_statistic": "api_statistic.csv",
    "memory_record": "memory_record.csv",
    "operator_memory": "operator_memory.csv",
    "npu_module_mem": "npu_module_mem.csv",
    "dataset": "dataset.csv",
    "operator_details": "operator_details.csv",
    "trace_view": "trace_view.json",
    "analysis_db": "analysis.db",
    "communication_db": "communication_analyzer.db",
    #: Written last, by torch_npu of 2026: if another capture of the run has it, a capture without it is not
    #: done.
    "done": layout.PARSED_MARK_NAME,
}
_METADATA = "profiler_metadata.json"
#: Where old torch_npu wrote it, among raw data.
_OLD_PLACE = "FRAMEWORK"
#: Files that identify a capture, without any records.
_ABOUT = {"metadata", "profiler_info", "done"}
#: A capture with any of these has text form.
_TEXT_ROLES = ("step_trace", "communication", "matrix")
_INFO = re.compile(r"^profiler_info(?:_(\d{1,6}))?\.json$")
_DATABASE = re.compile(r"^ascend_(pytorch|mindspore)_profiler(?:_(\d{1,6}))?\.db$")
_STAMP = re.compile(rf"_(\d{{14,17}}){layout.CAPTURE_END}$")
_WORKER = re.compile(rf"^(?P<worker>(?P<host>.+)_\d+)_\d{{14,17}}{layout.CAPTURE_END}$")
#: Names that MindSpore gives a capture (`rank-3_…_ascend_ms`) or the directory around it.
_RANK_NAME = re.compile(r"^(?:rank-(\d{1,6})_\d+_ascend_ms|rank_?(?P<wrapped>\d{1,6})_.*start\d+.*)$")
_WINDOW = re.compile(r"^rank_?\d+_(?P<window>.*start\d+.*)$")


def inspect_capture(directory: Path) -> tuple[Found | None, Problem | None]:
    """Return what one capture directory holds (None where it cannot be used), and what is wrong with it.

    One that does not say its rank can be used where it is the only one.
    """
    output = directory / layout.PROFILER_OUTPUT_NAME
    about = _files_in(directory)
    inside = _files_in(output) if output.is_dir() else {}
    files = {role: inside[name] for role, name in OUTPUT_FILES.items() if name in inside}
    for role, pattern in INPUT_PIPELINE.items():
        matching = [path for name, path in sorted(inside.items()) if pattern.match(name)]
        if matching:
            files[role] = matching[-1]
    if _METADATA in about:
        files["metadata"] = about[_METADATA]
    elif (directory / _OLD_PLACE / _METADATA).is_file():
        files["metadata"] = directory / _OLD_PLACE / _METADATA
    said = _ranks_of_names(directory, about, inside)
    if len(set(said.values())) > 1 and (own := _rank_of_contents(files)) is not None:
        said[_METADATA] = own
    ranks = list(said.values())
    rank = max(ranks, key=ranks.count, default=None)
    for role, pattern, names in (("profiler_db", _DATABASE, inside), ("profiler_info", _INFO, about)):
        matches = sorted(filter(pattern.match, names), key=lambda name: (said.get(name) != rank, name))
        if matches:
            files[role] = names[matches[0]]
    if not output.is_dir():
        packed = about.get(layout.PROFILER_OUTPUT_NAME)
        return None, Problem(
            fact("archive" if packed else "not_parsed"),
            file=public_name(directory) + (f"/{packed.name}" if packed else ""),
            rank=rank,
            advice="unpack" if packed else "parse_on_host",
        )
    if not files.keys() - _ABOUT:
        return None, Problem(fact("nothing_in_it"), file=public_name(directory), rank=rank)
    if rank is None:
        rank = _rank_of_contents(files)
    found = _found(directory, rank, files)
    if rank is None:
        why = fact("rank_not_known")
        return found, Problem(why, file=public_name(directory), advice="copy_profiler_info")
    return found, _contradiction(directory, said, rank)


def _files_in(directory: Path) -> dict[str, Path]:
    """Return the files in a directory by their names before packing.

    If a file lies beside its packed form, the file counts: its name is shorter.
    """
    names = {original_name(entry.name) for entry in os.scandir(directory) if is_file(entry)}
    return {layout.unpacked_name(name): directory / name for name in sorted(names, key=len, reverse=True)}


def _contradiction(directory: Path, said: Mapping[str, Rank], rank: Rank) -> Problem | None:
    """Return a problem where the names in a capture are of different ranks; `rank` is taken."""
    if len(set(said.values())) < 2:
        return None
    why = fact("names_disagree", said=tuple(said.items()), used=rank)
    return Problem(why, file=public_name(directory), rank=rank, advice="sort_by_rank")


def _found(directory: Path, rank: Rank | None, files: dict[str, Path]) -> Found:
    info = _read_info(files.get("profiler_info"))
    is_mindspore = layout.MINDSPORE_SUFFIX in directory.name or bool(
        info.ms_version or "mindspore" in files.get("profiler_db", Path()).name
    )
    is_text = any(role in files for role in _TEXT_ROLES)
    kinds: dict[tuple[bool, bool], SourceKind] = {
        (False, True): "ascend_pt/text",
        (False, False): "ascend_pt/db",
        (True, True): "ascend_ms/text",
        (True, False): "ascend_ms/db",
    }
    stamp = _STAMP.search(directory.name)
    worker = _WORKER.match(directory.name)
    window = _WINDOW.match(directory.parent.name)
    return Found(
        directory=directory,
        kind=kinds[is_mindspore, is_text],
        files=files,
        rank=rank,
        host_name=worker.group("host") if worker else "",
        window=window.group("window") if window else "",
        stamp=int(stamp.group(1).ljust(17, "0")) if stamp else 0,
        ended_ns=_ended_ns(info),
        folder=str(directory.parent),
        worker=worker.group("worker") if worker else "",
    )


class _Info(msgspec.Struct):
    rank_id: object = None
    end_info: object = None
    ms_version: object = None


def _read_info(path: Path | None) -> _Info:
    """Return the content; empty for a bad file, which reading the rank reports."""
    with suppress(BadFileError):
        return _Info() if path is None else decode(read_bytes(path), _Info)
    return _Info()


def _ended_ns(info: _Info) -> int:
    end = info.end_info
    time_ns = end.get("collectionTimeEnd") if isinstance(end, dict) else None
    return time_ns if isinstance(time_ns, int) else 0


def _ranks_of_names(
    directory: Path, about: Mapping[str, Path], inside: Mapping[str, Path]
) -> dict[str, Rank]:
    """Return the rank that each name says, most reliable first.

    Those are profiler_info_{rank}.json (without a rank in its name what is in it), what MindSpore calls the
    capture or the directory around it, and the databases.
    """
    said: dict[str, Rank | None] = {}
    for match in filter(None, map(_INFO.match, sorted(about))):
        number, info = match.group(1), match.string
        said[info] = Rank(int(number)) if number else as_rank(_read_info(about[info]).rank_id)
    for name in (directory.name, directory.parent.name):
        named = _RANK_NAME.match(name)
        if named:
            said[name] = Rank(int(named.group(1) or named.group("wrapped")))
    for match in filter(None, map(_DATABASE.match, sorted(inside))):
        if match.group(2):
            said[match.string] = Rank(int(match.group(2)))
    return {name: rank for name, rank in said.items() if rank is not None}


def _rank_of_contents(files: Mapping[str, Path]) -> Rank | None:
    """Return the rank that the metadata says, else the database; None where they are damaged or do not."""
    readers: tuple[tuple[str, Callable[[Path], Rank | None]], ...] = (
        ("metadata", lambda path: read_metadata(path).own_rank),
        ("profiler_db", read_own_rank),
    )
    for role, read in readers:
        if role in files:
            with suppress(BadFileError):
                rank = read(files[role])
                if rank is not None:
                    return rank
    return None
