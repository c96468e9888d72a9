"""r1.x files: one flat directory a host (or a job), the id in each file's name.

In a run directory the id is the device (r1.2, r1.3) or already the rank (r1.5 and later). The rank table
decides for the whole job: the ids are devices when every host's ids are devices of that host.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_analysis.discovery.found import Found, is_file, modified_ns
from cluster_analysis.sources.columns.place import original_name
from cluster_run.facts import fact
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.problem import Problem

#: Pattern of MindSpore's files on the input pipeline for each role, of 2.x too; the number is the id.
INPUT_PIPELINE = {
    "minddata_pipeline": re.compile(r"^minddata_pipeline_raw(?:_(\d{1,6}))?\.csv$"),
    "minddata_summary": re.compile(r"^minddata_pipeline_summary(?:_(\d{1,6}))?\.csv$"),
    "device_queue": re.compile(r"^(?:device_queue|dataset_iterator)_profiling(?:_(\d{1,6}))?\.txt$"),
    "device_fetches": re.compile(r"^minddata_aicpu(?:_(\d{1,6}))?\.txt$"),
    "host_processors": re.compile(r"^minddata_cpu_utilization(?:_(\d{1,6}))?\.json$"),
}
#: Pattern of the file for each role; the last number is the id.
FILES = {
    "r1_step_trace": re.compile(r"^step_trace_raw_(\d{1,6})_detail_time\.csv$"),
    "r1_hccl": re.compile(r"^hccl_raw_(\d{1,6})\.csv$"),
    "r1_cluster_analyse": re.compile(r"^(?:ascend|gpu)_cluster_analyse_[a-z-]+_\d+_\d+_(\d{1,6})\.csv$"),
    "r1_aicore": re.compile(r"^aicore_intermediate_(\d{1,6})_type\.csv$"),
    "r1_aicore_detail": re.compile(r"^aicore_intermediate_(\d{1,6})_detail\.csv$"),
    "r1_framework": re.compile(r"^framework_raw_(\d{1,6})\.csv$"),
    "r1_strategy": re.compile(r"^parallel_strategy_(\d{1,6})\.json$"),
    "r1_flops": re.compile(r"^flops_summary_(\d{1,6})\.json$"),
    "r1_memory": re.compile(r"^memory_usage_summary_(\d{1,6})\.json$"),
    "r1_gpu_operators": re.compile(r"^gpu_op_type_info_(\d{1,6})\.csv$"),
    **INPUT_PIPELINE,
}

_MAIN = frozenset({"r1_step_trace", "r1_hccl", "r1_cluster_analyse"})
_STAMP = re.compile(r"^profiler-(\d+)$")
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


def inspect_legacy(
    directories: Mapping[Path, HostId | None], ranks: Mapping[tuple[HostId | None, DeviceId], Rank]
) -> tuple[list[Found], list[Problem]]:
    """Return the r1.x captures of all directories.

    Args:
        directories: each directory with the host it was collected from, None outside a run directory.
        ranks: rank of each device as the rank table has it; empty without one.
    """
    problems: list[Problem] = []
    by_place = [
        (directory, host, number, _one_a_role(roles, host, problems))
        for directory, host in sorted(directories.items(), key=lambda item: item[0])
        for number, roles in sorted(_files_by_id(directory).items())
    ]
    hosts = {host for _, host, _, _ in by_place if host is not None}
    are_devices = bool(ranks) and all(
        (host, DeviceId(number)) in ranks for _, host, number, _ in by_place if host is not None
    )
    found: list[Found] = []
    counts = Counter(number for _, _, number, _ in by_place)
    # Ranks may have a file twice; ids of devices are on most hosts.
    repeated = not are_devices and 2 * sum(n > 1 for n in counts.values()) >= len(counts)
    for directory, host, number, files in by_place:
        if host is not None and are_devices:
            rank: Rank | None = ranks[host, DeviceId(number)]
        elif len(hosts) > 1 and repeated:
            problems.append(
                Problem(
                    fact("device_of_several_hosts", device=number),
                    file=directory.name,
                    host=host,
                    advice="put_rank_table_in_run",
                )
            )
            continue
        else:
            rank = Rank(number)
        device = DeviceId(number) if are_devices and host is not None else None
        stamp = _STAMP.match(directory.name)
        found.append(
            Found(
                directory=directory,
                kind="mindspore_r1/text",
                files=files,
                rank=rank,
                host=host,
                device=device,
                stamp=int(stamp.group(1)) if stamp else 0,
                folder=directory.name if host is not None else str(directory),
            )
        )
    return found, problems + _lacking(found)


def _lacking(found: Sequence[Found]) -> list[Problem]:
    """Return a problem for each file of a judged role that a rank lacks, and that most ranks have."""
    problems = []
    of_rank = {one.rank: one for one in found}
    for role in sorted(_MAIN):
        names = {one.rank: original_name(one.files[role].name) for one in found if role in one.files}
        for rank in of_rank.keys() - names.keys() if 2 * len(names) > len(of_rank) else ():
            file = _LAST_NUMBER.sub("*", next(iter(names.values())))
            why = fact("others_have_it", n_ranks=len(names))
            problems.append(Problem(why, file, rank, of_rank[rank].host, "collect_from_host"))
    return problems


def names_rank(name: str) -> bool:
    """Return whether a file is one of those that make a capture of r1.x."""
    return any(FILES[role].match(name) for role in _MAIN)


def _files_by_id(directory: Path) -> dict[int, dict[str, list[Path]]]:
    files: dict[int, dict[str, list[Path]]] = {}
    names = {original_name(entry.name) for entry in os.scandir(directory) if is_file(entry)}
    for name in sorted(names):
        for role, pattern in FILES.items():
            match = pattern.match(name)
            if match and match.group(1):
                files.setdefault(int(match.group(1)), {}).setdefault(role, []).append(directory / name)
    return {number: roles for number, roles in files.items() if roles.keys() & _MAIN}


def _one_a_role(
    roles: Mapping[str, list[Path]], host: HostId | None, problems: list[Problem]
) -> dict[str, Path]:
    """Return one file a role. Sessions in different parallel modes leave several: the newest counts."""
    files = {}
    for role, paths in roles.items():
        files[role] = max(paths, key=lambda path: (modified_ns(path), path.name))
        if len(paths) > 1:
            others = tuple(path.name for path in paths if path != files[role])
            problems.append(
                Problem(
                    fact("several_files_of_one_id", n_files=len(paths), others=others),
                    file=files[role].name,
                    host=host,
                    advice="remove_other_sessions",
                )
            )
    return files
