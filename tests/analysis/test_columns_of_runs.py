"""A run of columns, of files, or of both gives the same findings, tables and problems, byte for byte."""

from __future__ import annotations

import asyncio
import json
import shutil
from itertools import product
from pathlib import Path

import pytest

from cluster_analysis.cli import main
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.pool import collect
from cluster_reduce.form import SUFFIX
from cluster_run.ids import HostId, ServerId
from tests.analysis.runs import file_of, write_small_run
from tests.analysis.sources.test_kernel_columns import HEADER, ROWS

RAW = CollectOptions(what=("analysis",), min_free_bytes=0)
COLUMNS = CollectOptions(what=("columns",), min_free_bytes=0, columns_as_root=True)


def collected(source: Path, numbers: str, run: Path, options: CollectOptions) -> None:
    specs = [
        HostSpec(
            HostId(number),
            ServerId(f"node{number}"),
            local=str(source / "cluster_profiler" / number / "profiler"),
            transport="local",
        )
        for number in numbers
    ]
    asyncio.run(collect(specs, run, options, None, ProgressListener()))


def said_of(run: Path) -> dict[str, object]:
    """What the analysis writes of a run, without where it lies."""
    main([str(run), "--quiet", "--no-report"])
    output = run / "cluster_analysis_output"
    findings = json.loads((output / "findings.json").read_bytes())
    for name in ("path", "name", "command", "mapping"):
        findings["run"].pop(name, None)
    tables = {path.name: path.read_bytes() for path in sorted((output / "tables").iterdir())}
    return {"findings": json.dumps(findings), **tables}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", pytest.param("db", marks=pytest.mark.slow)])
def test_columns_files_and_both_mixed_give_the_same(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_small_run(tmp_path / "source", form=form, steps=2)
    if form == "text":
        # Kernels are summed of their details, of one rank of whose a line is damaged.
        for statistic in source.rglob("op_statistic.csv"):
            statistic.with_name("kernel_details.csv").write_text("\n".join([HEADER, *ROWS * 40, ""]))
            statistic.unlink()
        file_of(source, 5, "kernel_details.csv").write_text("\n".join([HEADER, *ROWS * 40, "13,0", ""]))
    damaged = file_of(source, 2, "communication.json" if form == "text" else "analysis.db")
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    collected(source, "12", tmp_path / "raw", RAW)
    collected(source, "12", tmp_path / "columns", COLUMNS)
    collected(source, "1", tmp_path / "mixed", COLUMNS)
    collected(source, "2", tmp_path / "mixed", RAW)
    hosts_with_columns = {
        run: {path.relative_to(tmp_path / run).parts[1] for path in (tmp_path / run).rglob(f"*{SUFFIX}")}
        for run in ("raw", "columns", "mixed")
    }
    assert hosts_with_columns == {"raw": set(), "columns": {"1", "2"}, "mixed": {"1"}}
    for run, name in product(hosts_with_columns, ("hccl.json", "host_ips_mapping.txt")):
        # Nothing else says of r1.x files which rank a device is.
        shutil.copy(source / name, tmp_path / run)
    wanted = said_of(tmp_path / "raw")
    assert '"problems": [{' in str(wanted["findings"])
    assert said_of(tmp_path / "columns") == wanted
    assert said_of(tmp_path / "mixed") == wanted
