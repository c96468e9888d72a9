"""The fleet's runs as a file of JSON lines, for another site: without names, unless they are asked for."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cluster_fleet.identity import Known
from cluster_fleet.records import NamedFinding, RunRecord, Series
from cluster_run.errors import SchemaError, read_as
from cluster_run.files import json_of, write_bytes_whole

SCHEMA = "cluster-fleet-export/1"


def export(records: Iterable[RunRecord], path: Path, salt: str) -> int:
    """Write all runs to a gzip file and return how many; with a `salt` every name and key is a hash."""
    lines = [json.dumps({"schema": SCHEMA, "is_anonymous": bool(salt)})]
    lines += [json.dumps(_plain(anonymous(one, salt) if salt else one)) for one in records]
    # Without a time in it, so that the same fleet gives the same file.
    write_bytes_whole(path, gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    return len(lines) - 1


def exported(path: Path) -> Iterator[RunRecord]:
    """Give the runs of a file that `export` wrote.

    Raises:
        InputError: it is none.
    """
    whole = read_as(f"{path}: not a whole export of a fleet")
    with whole, gzip.open(path, "rt", encoding="utf-8") as stream:
        head = json_of(next(stream, "{}"))
        if head.get("schema") != SCHEMA:
            raise SchemaError(f"{path}: schema {head.get('schema')!r} found, {SCHEMA!r} wanted")
        for line in stream:
            yield _record(json_of(line))


def anonymous(record: RunRecord, salt: str) -> RunRecord:
    """Return the run with hashes for all that names anything; the same salt gives the same hashes.

    Its fingerprint stays: only who has the run can make it, and it counts once, however often it comes.
    """

    def hashed(text: str) -> str:
        return hashlib.sha256(f"{salt}\0{text}".encode()).hexdigest()[:24] if text else ""

    def unit(one: Known) -> Known:
        key = hashed(one.key)
        kind = "device" if one.host_key else "host"
        return Known(key, f"{kind} {key[:8]}", hashed(one.place), hashed(one.host_key))

    return replace(
        record,
        name=f"run {hashed(record.fingerprint)[:8]}",
        units=[unit(one) for one in record.units],
        series=[replace(one, keys=[hashed(key) for key in one.keys]) for one in record.series],
        findings=[replace(one, finding=one.kind + "-" + hashed(one.finding)[:8],
                          units=tuple(map(hashed, one.units))) for one in record.findings],
    )  # fmt: skip


def _plain(record: RunRecord) -> dict[str, Any]:
    plain = {**vars(record), "versions": dict(record.versions)}
    plain["units"] = [vars(one) for one in record.units]
    plain["findings"] = [vars(one) for one in record.findings]
    plain["series"] = [
        {
            "metric": one.metric,
            "keys": list(one.keys),
            "values": _numbers(one.values),
            "errors": _numbers(one.errors),
        }
        for one in record.series
    ]
    return plain


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{one:.9g}") if np.isfinite(one) else None for one in np.asarray(values).tolist()]


def _record(plain: dict[str, Any]) -> RunRecord:
    series = [
        Series(one["metric"], one["keys"], np.array(one["values"], float), np.array(one["errors"], float))
        for one in plain["series"]
    ]
    findings = [NamedFinding(**{**one, "units": tuple(one["units"])}) for one in plain["findings"]]
    units = [Known(**one) for one in plain["units"]]
    return RunRecord(**{**plain, "series": series, "findings": findings, "units": units})
