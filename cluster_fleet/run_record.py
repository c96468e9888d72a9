"""From the output of `cluster-analyse` to what the fleet remembers of the run.

Neither `pyarrow.parquet.read_table` nor `to_numpy` is used: both load pandas, a quarter of the whole command.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cluster_fleet.identity import Known, RunHosts, hosts_of_run
from cluster_fleet.judging.evidence import FloatArray
from cluster_fleet.records import NamedFinding, RunRecord, Series
from cluster_run.errors import InputError, read_as, spoken
from cluster_run.files import json_of
from cluster_run.findings import ALARMS, FindingsDocument
from cluster_run.ids import HostId
from cluster_run.kinds import HOST_KINDS
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME, TABLES_NAME

_ADVICE = "cluster-analyse RUN writes it"


def record_of(
    run: Path, results: Path | None = None, *, hours: float = 1.0, show_addresses: bool = False
) -> RunRecord:
    """Read what is to be remembered of a run.

    Args:
        run: the run directory.
        results: where its findings and tables are; in the run directory by default.
        hours: how long its job ran.
        show_addresses: hosts are called as the rank table does, which may be an address.

    Raises:
        InputError: it was not analysed, or its hosts are unknown.
    """
    folder = results or run / ANALYSIS_OUTPUT_NAME
    document = _findings(folder / FINDINGS_NAME)
    ranks, steps, relative = (
        _table(folder / TABLES_NAME / f"{name}.parquet") for name in ("ranks", "steps", "relative_to_peers")
    )
    places = hosts_of_run(run, show_addresses=show_addresses)
    try:
        by_rank, hosts = units_of(ranks, places)
        info = document["run"]
        return RunRecord(
            fingerprint=fingerprint(info.get("captured"), by_rank, steps),
            name=str(info.get("name") or run.resolve().name),
            captured_s=_captured_s(info.get("captured"), folder / FINDINGS_NAME),
            hours=hours,
            step_ms=float(info.get("step_ms") or 0.0),
            verdict=str(document["verdict"]),
            versions=_versions(places),
            units=[*hosts.values(), *by_rank.values()],
            series=list(_series(relative, by_rank, places)),
            findings=[
                _named(one, by_rank, places) for one in document["findings"] if one["severity"] in ALARMS
            ],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = "a field or a column is missing, or is not what this version writes"
        raise InputError(f"{folder}: {why}", _ADVICE) from error


def _series(relative: pa.Table, by_rank: Mapping[int, Known], places: RunHosts) -> Iterator[Series]:
    """Give each metric of those ranks and hosts that are known."""
    known = {rank: one.key for rank, one in by_rank.items()}
    known_hosts = {str(host): one.key for host, one in places.hosts.items()}
    of = zip(relative["rank"].to_pylist(), relative["host"].to_pylist(), strict=True)
    keys = [known.get(rank, "") if host is None else known_hosts.get(host, "") for rank, host in of]
    values, errors = (_floats(relative[name]) for name in ("value", "error"))
    rows: dict[str, list[int]] = {}
    for at, metric in enumerate(relative["metric"].to_pylist()):
        if keys[at]:
            rows.setdefault(metric, []).append(at)
    for metric, own in rows.items():
        yield Series(metric, [keys[at] for at in own], values[own], errors[own])


def _findings(path: Path) -> dict[str, Any]:
    with read_as(f"{path}: cannot be read", _ADVICE):
        document: dict[str, Any] = json_of(path.read_bytes())
        if (found := document["schema"]) != FindingsDocument.SCHEMA:
            raise InputError(f"{path}: schema {found!r} found, {FindingsDocument.SCHEMA!r} wanted", _ADVICE)
        return document


def _table(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            return file.read()
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read: {spoken(error)}", _ADVICE) from error


def _floats(column: pa.ChunkedArray) -> FloatArray:
    """Return a column, NaN for null."""
    return np.array(column.to_pylist(), float)


def units_of(ranks: pa.Table, places: RunHosts) -> tuple[dict[int, Known], dict[str, Known]]:
    """Return the device of each rank that is placed, and the hosts by key.

    Raises:
        InputError: none is.
    """
    by_rank: dict[int, Known] = {}
    hosts: dict[str, Known] = {}
    for row in ranks.select(["rank", "host", "device"]).to_pylist():
        host = places.hosts.get(HostId(str(row["host"])))
        if host is not None and row["device"] is not None:
            by_rank[row["rank"]] = places.device(HostId(str(row["host"])), row["device"])
            hosts[host.key] = host
    if not by_rank:
        raise InputError("no rank of the run has a host and a device", "a rank table says where ranks run")
    return by_rank, hosts


def fingerprint(captured: str | None, by_rank: Mapping[int, Known], steps: pa.Table) -> str:
    """Return a mark of a capture, the same in each analysis: by time, steps, devices, recorded times."""
    recorded_us = np.nan_to_num(_floats(steps["computing_us"]))
    content = (
        captured,
        sorted(set(steps["step"].to_pylist())),
        sorted((rank, one.key) for rank, one in by_rank.items()),
        round(float(np.sort(recorded_us).sum())),
    )
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _captured_s(captured: str | None, findings: Path) -> float:
    """By the host's clock, taken for UTC; where no name says it, when it was analysed."""
    if captured:
        return datetime.fromisoformat(captured).replace(tzinfo=timezone.utc).timestamp()
    return findings.stat().st_mtime


def _versions(places: RunHosts) -> dict[str, str]:
    """Versions that the hosts of a run state; several are joined."""
    found: dict[str, set[str]] = {}
    for hardware in places.hardware.values():
        for name, version in hardware.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in sorted(found.items())}


def _named(finding: Mapping[str, Any], by_rank: Mapping[int, Known], places: RunHosts) -> NamedFinding:
    """What lies in several hosts (a rail, a switch, hosts that are slow alike) is no fault of one unit."""
    found = [by_rank.get(rank) for rank in finding["ranks"]]
    if finding["kind"] in HOST_KINDS or not any(found):
        found = [places.hosts.get(HostId(host)) for host in finding["hosts"]]
    hosts = {one and (one.host_key or one.key) for one in found}
    units = tuple(dict.fromkeys(one.key for one in found if one is not None and len(hosts) == 1))
    return NamedFinding(finding["id"], finding["kind"], float(finding["cost_share"] or 0.0), units)
