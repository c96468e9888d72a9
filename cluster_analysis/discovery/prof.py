"""Captures of CANN itself: `PROF_{n}_{time}_{id}` directories that `msprof` has exported.

The rank is `rank_id` in `device_N/info.json.N`; where it is not set, it comes from the rank table, or else
ranks are counted by host and device, and that is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cluster_analysis.discovery.found import Found, as_rank
from cluster_analysis.sources.text.timeline_json import TIMELINE, is_iteration_export, role_of, slice_number
from cluster_analysis.tables.model import SourceKind
from cluster_run.facts import fact
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.problem import Problem

_ANALYZE, _EXPORT = "analyze", "mindstudio_profiler_output"
#: Of each role the directory below PROF_*, and the file's name.
FILES = {
    "communication": (_ANALYZE, re.compile(r"^communication\.json$")),
    "matrix": (_ANALYZE, re.compile(r"^communication_matrix\.json$")),
    "communication_db": (_ANALYZE, re.compile(r"^communication_analyzer\.db$")),
    "op_statistic": (_EXPORT, re.compile(r"^op_statistic_\d+\.csv$")),
    "api_statistic": (_EXPORT, re.compile(r"^api_statistic_\d+\.csv$")),
    TIMELINE: (_EXPORT, re.compile(r"^msprof(?:_slice_\d+)?_\d+\.json$")),
    "profiler_db": ("", re.compile(r"^msprof_\d+\.db$")),
}
_STAMP = re.compile(r"^PROF_\d+_(\d{14,17})_")
_DEVICE = re.compile(r"^device_(\d+)$")
_UNSET = -1


class _Info(msgspec.Struct):
    rank_id: int | str = _UNSET
    hostname: str = ""
    host_uid: str | int = msgspec.field(name="hostUid", default="")


def inspect_prof(
    directories: Mapping[Path, HostId | None], ranks: Mapping[tuple[HostId | None, DeviceId], Rank]
) -> tuple[list[Found], list[Problem]]:
    """Return the captures of all `PROF_*` directories; see `inspect_legacy` for the arguments."""
    found: list[tuple[Found, str]] = []
    problems: list[Problem] = []
    for directory, host in sorted(directories.items(), key=lambda item: item[0]):
        files = _files(directory)
        if not files:
            old = any(directory.glob("device_*/timeline/*.json"))
            problems.append(
                Problem(
                    fact("exported_by_old_cann" if old else "raw_only"),
                    file=directory.name,
                    host=host,
                    advice="export_with_msprof",
                )
            )
            continue
        devices = _devices(directory)
        if len(devices) > 1:
            problems.append(
                Problem(fact("several_devices", n_devices=len(devices)), file=directory.name, host=host)
            )
            continue
        device, info = _info(directory, devices)
        stamp = _STAMP.match(directory.name)
        one = Found(
            directory=directory,
            kind=_kind(files),
            files=files,
            rank=_rank(info, host, device, ranks),
            host=host,
            device=device,
            host_name=info.hostname,
            stamp=int(stamp.group(1).ljust(17, "0")) if stamp else 0,
            folder=str(directory.parent),
        )
        found.append((one, str(info.host_uid)))
    return _counted(found, problems)


def _files(directory: Path) -> dict[str, Path]:
    files = {}
    for role, (below, pattern) in FILES.items():
        folder = directory / below if below else directory
        matches = (
            sorted(path for path in folder.glob("*") if pattern.match(path.name)) if folder.is_dir() else []
        )
        if role == TIMELINE:
            files.update(_newest_timeline(matches))
        elif matches:
            files[role] = matches[-1]
    if not files:
        older = sorted(directory.glob("device_*/timeline/*.json"))
        files = {said: path for path in older if (said := role_of(path))}
        files = files or _newest_timeline([path for path in older if path.name.startswith("msprof_")])
    return files


def _newest_timeline(paths: list[Path]) -> dict[str, Path]:
    """Return the newest export by role; the slices of a large one hold its times only together."""
    of_export: dict[str, list[Path]] = {}
    for path in paths:
        of_export.setdefault(path.stem.rpartition("_")[2], []).append(path)
    parts = sorted(of_export[max(of_export)], key=slice_number) if of_export else []
    return {f"{TIMELINE}/{at}" if at else TIMELINE: path for at, path in enumerate(parts)}


def _kind(files: Mapping[str, Path]) -> SourceKind:
    is_text = bool(files.keys() & {"communication", "matrix", TIMELINE}) or is_iteration_export(files)
    return "prof/text" if is_text else "prof/db"


def _devices(directory: Path) -> list[DeviceId]:
    """Return the devices of a capture."""
    matches = [
        match for match in map(_DEVICE.match, (one.name for one in directory.glob("device_*"))) if match
    ]
    return sorted(DeviceId(int(match.group(1))) for match in matches)


def _info(directory: Path, devices: list[DeviceId]) -> tuple[DeviceId | None, _Info]:
    if not devices:
        return None, _Info()
    try:
        content = (directory / f"device_{devices[0]}" / f"info.json.{devices[0]}").read_bytes()
        return devices[0], msgspec.json.decode(content, type=_Info)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return devices[0], _Info()


def _rank(
    info: _Info,
    host: HostId | None,
    device: DeviceId | None,
    ranks: Mapping[tuple[HostId | None, DeviceId], Rank],
) -> Rank | None:
    said = as_rank(info.rank_id)
    if said is not None:
        return said
    return ranks.get((host, device)) if device is not None else None


def _counted(found: list[tuple[Found, str]], problems: list[Problem]) -> tuple[list[Found], list[Problem]]:
    """Count ranks by host and device where no capture knows its rank; reported, because it is a guess."""
    knows = any(one.rank is not None for one, _ in found)
    lost = [one for one, _ in found if one.rank is None and (knows or one.device is None)]
    problems += [
        Problem(
            fact("rank_not_known" if knows else "rank_or_device_not_known"),
            file=one.directory.name,
            host=one.host,
            advice="copy_device_info",
        )
        for one in lost
    ]
    if knows:
        return [one for one, _ in found if one.rank is not None], problems
    counted = [(one, (str(one.host or uid), one.device)) for one, uid in found if one.device is not None]
    places = sorted({place for _, place in counted})
    if counted:
        problems.append(
            Problem(fact("ranks_counted", n_devices=len(places)), file="info.json", advice="put_rank_table")
        )
    return [replace(one, rank=Rank(places.index(place))) for one, place in counted], problems
