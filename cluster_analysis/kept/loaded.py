"""Our own output read back: findings.json and tables/*.parquet are a result again, without the raw data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cluster_analysis.findings_json import read_document
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.result import AnalysisResult
from cluster_analysis.tables.columns import declared
from cluster_analysis.tables.model import Group, Topology
from cluster_analysis.tables.schema import LINKS
from cluster_run.errors import InputError, spoken
from cluster_run.findings import FindingsDocument
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME, TABLES_NAME

#: Without these nothing can be drawn or compared.
_NEEDED = ("ranks", "steps", "groups")
#: Columns that every version wrote: where a table lacks one it is not ours.
_KEYS = ("rank", "step")
KEEP = f"keep {FINDINGS_NAME} and {TABLES_NAME}/ of an analysis: that is all it takes"


def is_output(path: Path) -> bool:
    """Return whether a directory is an output of ours, with no raw data to be analysed."""
    return (path / FINDINGS_NAME).is_file() and (path / TABLES_NAME).is_dir()


def output_of(path: Path) -> Path:
    """Return the output of ours that `path` is or holds.

    Raises:
        InputError: there is none.
    """
    for one in (path, path / ANALYSIS_OUTPUT_NAME):
        if is_output(one):
            return one
    what = "no such directory" if not path.exists() else f"no {FINDINGS_NAME} with {TABLES_NAME}/ in it"
    raise InputError(f"{path}: {what}", KEEP)


def load_document(path: Path) -> FindingsDocument:
    """Return the findings alone of the output that `path` is or holds.

    Raises:
        InputError: there is none, or it is damaged.
    """
    return read_document(output_of(path) / FINDINGS_NAME)


def load_result(path: Path) -> AnalysisResult:
    """Return the result that an analysis wrote into the output that `path` is or holds.

    Raises:
        InputError: there is none, a table is missing or damaged.
    """
    folder = output_of(path)
    document = load_document(folder)
    tables = {file.stem: _read(file) for file in sorted((folder / TABLES_NAME).glob("*.parquet"))}
    missing = [name for name in _NEEDED if name not in tables]
    if missing:
        raise InputError(f"{folder / TABLES_NAME}: {missing[0]}.parquet is missing", KEEP)
    return AnalysisResult(document=document, topology=_topology(tables, document), tables=tables)


def evidence_of(result: AnalysisResult) -> JobEvidence:
    """Return what two runs are compared by, as far as tables hold it: links are not, which need each call."""
    steps = result.document.run.steps
    kept = {name: result.table(name) for name in ("matched", "rank_times", "operators", "packets")}
    return JobEvidence(steps=steps, step_table=result.tables["steps"], links=LINKS.empty_table(), **kept)


def _read(file: Path) -> pa.Table:
    """Return a table with the columns that this version declares: what an older one did not write is null."""
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{file}: not a readable table: {spoken(error)}", KEEP) from error
    for field in declared(file.stem):
        if field.name not in table.column_names:
            if field.name in _KEYS:
                raise InputError(f"{file}: column {field.name!r} is missing", KEEP)
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def _topology(tables: dict[str, pa.Table], document: FindingsDocument) -> Topology:
    rows = tables["ranks"].to_pylist()

    def known(name: str) -> dict[Rank, int]:
        return {Rank(row["rank"]): row[name] for row in rows if row[name] is not None}

    groups = {
        row["communicator"]: Group(row["communicator"], row["role"], tuple(row["ranks"]), row["group"])
        for row in tables["groups"].to_pylist()
        if row.get("communicator")
    }
    return Topology(
        ranks=tuple(Rank(row["rank"]) for row in rows),
        hosts={rank: HostId(host) for rank, host in known("host").items()},  # type: ignore[arg-type]
        devices={rank: DeviceId(device) for rank, device in known("device").items()},
        groups=groups,
        parallel=document.run.parallel,
        stages=known("stage"),
        tp_index=known("tp_index"),
        dp_index=known("dp_index"),
    )
