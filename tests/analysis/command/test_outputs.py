"""Outputs and what the command line forgives: kept, read again, compared; archives; parts of a tree."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

import cluster_analysis as ca
from cluster_analysis.cli import main, make_parser
from cluster_analysis.kept.loaded import load_result
from cluster_analysis.options import FailOn, fail_on
from cluster_analysis.progress import bar
from cluster_analysis.tables import columns
from cluster_run.errors import InputError
from tests.analysis.reports.pages import unpack
from tests.analysis.runs import digests, write_small_run
from tests.analysis.sources.builders import write_capture

Capsys = pytest.CaptureFixture[str]


def test_a_shorter_call_deletes_nothing_that_it_does_not_write(
    slow_run: Path, slow_output: Path, tmp_path: Path, capsys: Capsys
) -> None:
    output = tmp_path / "out"
    shutil.copytree(slow_output, output)
    before = {path.name for path in output.iterdir()}
    assert main([str(slow_run), "--output", str(output), "--json", "--no-report"]) == 0
    assert {path.name for path in output.iterdir()} == before
    assert "From an earlier call, and not renewed: report.html, trace.json.gz" in capsys.readouterr().err


def test_what_another_program_wrote_in_the_folder_stays_under_another_name(
    slow_run: Path, tmp_path: Path, capsys: Capsys
) -> None:
    output = tmp_path / "out"
    (output / "tables").mkdir(parents=True)
    (output / "tables" / "mine").touch()
    (output / "cluster_step_trace_time.csv").write_text("of msprof-analyze")
    (output / "cluster.db").touch()
    assert main([str(slow_run), "--output", str(output), "--insight", "--no-report"]) == 0
    assert (output / "cluster_step_trace_time.csv.before").read_text() == "of msprof-analyze"
    assert (output / "tables.before" / "mine").exists()
    assert not list(output.glob("cluster.db*"))
    said = "Of another program, and renamed to NAME.before: cluster_step_trace_time.csv, tables/\n"
    assert said in capsys.readouterr().err
    assert main([str(slow_run), "--output", str(output), "--insight", "--no-report"]) == 0
    assert "NAME.before" not in capsys.readouterr().err
    assert (output / "cluster_step_trace_time.csv.before").read_text() == "of msprof-analyze"


def test_a_query_writes_nothing(slow_run: Path, slow_output: Path, tmp_path: Path) -> None:
    before, of_run = digests(slow_output), digests(slow_run)
    assert main([str(slow_run), "--output", str(tmp_path / "none"), "--no-output", "-q"]) == 0
    assert main(["report", str(slow_output)]) == 0
    assert main(["trend", str(slow_output)]) == 0
    assert not (tmp_path / "none").exists()
    assert (digests(slow_output), digests(slow_run)) == (before, of_run)


@pytest.mark.slow
def test_report_tells_an_output_as_the_call_that_wrote_it(
    slow_run: Path, tmp_path: Path, capsys: Capsys
) -> None:
    for form in ("terminal", "markdown", "json"):
        argv = [
            str(slow_run),
            "--output",
            str(tmp_path),
            "--no-insight",
            "--no-report",
            "--format",
            form,
            "-q",
        ]
        assert main(argv) == 0
        told = capsys.readouterr().out
        assert main(["report", str(tmp_path), "--format", form]) == 0
        assert capsys.readouterr().out == told
    assert main(["report", str(tmp_path), "--page", str(tmp_path / "page.html")]) == 0
    assert "slow rank 3" in (tmp_path / "page.html").read_text().lower()


def test_figures_that_an_older_version_did_not_write_are_null(
    slow_run: Path, slow_output: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(slow_output, older)
    newer = {"steps": "bubble_us", "stages": "bubble_us", "rank_times": "gap_us", "links": "excess_share"}
    for name, column in newer.items():
        file = older / "tables" / f"{name}.parquet"
        pq.write_table(pq.read_table(file).drop([column]), file)
    tables = load_result(older).tables
    assert all(tables[name][column].null_count == len(tables[name]) for name, column in newer.items())
    assert all(
        set(getattr(columns, name.title().replace("_", "")).schema.names) == set(table.column_names)
        for name, table in tables.items()
    )
    assert main(["report", str(older), "--page", str(tmp_path / "page.html")]) == 0
    output = ["--output", str(tmp_path / "out"), "--no-insight", "-q"]
    assert main([str(slow_run), *output, "--baseline", str(older)]) == 0


def test_tables_that_an_older_version_did_not_write_are_empty(
    slow_run: Path, slow_output: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(slow_output, older)
    for name in ("matched", "rank_times", "operators", "packets"):
        (older / "tables" / f"{name}.parquet").unlink()
    assert main(["report", str(older), "--page", str(tmp_path / "page.html")]) == 0
    output = ["--output", str(tmp_path / "out"), "--no-insight", "--no-report", "-q"]
    assert main([str(slow_run), *output, "--baseline", str(older)]) == 0


def test_a_directory_called_as_a_query_hides_none(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trend").mkdir()
    assert main(["trend", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: cluster-analyse trend")


def test_trend_has_a_row_a_run_in_the_order_of_their_recording(
    slow_output: Path, tmp_path: Path, capsys: Capsys
) -> None:
    for name, captured in (("late", "2026-02-01T00:00:00"), ("early", "2026-01-01T00:00:00")):
        shutil.copytree(slow_output, tmp_path / name)
        document = json.loads((slow_output / "findings.json").read_text())
        document["run"] |= {"captured": captured, "name": name}
        (tmp_path / name / "findings.json").write_text(json.dumps(document))
    assert main(["trend", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in rows] == ["early", "late"]
    assert all("slow_rank-3" in row["findings"] for row in rows)
    assert main(["trend", str(tmp_path), "--lang", "en"]) == 0
    head, first, _ = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "run"
    assert "slow_rank-3" in first


@pytest.mark.parametrize(
    ("alone_ms", "high_ms", "told"),
    [(20.0, 31.0, "20.0–31.0 ms"), (20.0, 20.0, "20.0 ms"), (0.0, 31.0, "up to 31.0 ms")],
)
def test_a_trend_tells_what_a_run_loses_as_its_headline_does(
    alone_ms: float, high_ms: float, told: str, slow_output: Path, tmp_path: Path, capsys: Capsys
) -> None:
    shutil.copytree(slow_output, tmp_path / "run")
    document = json.loads((slow_output / "findings.json").read_text())
    costs = ("cost_ms_per_step", "cost_low_ms", "after_others_ms", "cumulative_saving_ms")
    document["findings"][0] |= {**dict.fromkeys(costs, alone_ms), "cost_high_ms": high_ms, "facts": []}
    document["findings"] = document["findings"][:1]
    (tmp_path / "run" / "findings.json").write_text(json.dumps(document))
    for query in ("report", "trend"):
        main([query, str(tmp_path / "run"), "--lang", "en"])
        assert told in " ".join(capsys.readouterr().out.split())


def test_the_page_of_a_trend_has_each_run_and_leads_to_its_report(
    slow_output: Path, tmp_path: Path, capsys: Capsys
) -> None:
    runs = tmp_path / "runs & more"
    for name, captured in (("early", "2026-01-01T00:00:00"), ("late", "2026-02-01T00:00:00")):
        shutil.copytree(slow_output, runs / name)
        document = json.loads((slow_output / "findings.json").read_text())
        document["run"] |= {"captured": captured, "name": f"{name} <b>"}
        (runs / name / "findings.json").write_text(json.dumps(document))
    (runs / "late" / "report.html").unlink(missing_ok=True)
    (runs / "early" / "report.html").write_text("its report")
    assert main(["trend", str(runs), "--page", str(tmp_path / "trend.html"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    page = (tmp_path / "trend.html").read_text()
    header, columns = unpack(page.partition('id="payload">')[2].partition("<")[0])
    assert [(one["name"], one["href"]) for one in header["rows"]] == [
        ("early <b>", "runs%20%26%20more/early/report.html"),
        ("late <b>", ""),
    ]
    assert sum(columns.values()) / 1e3 == pytest.approx([row["step_ms"] for row in rows], rel=1e-3)
    assert "early &lt;b&gt;" in page
    assert "early <b>" not in page
    rank = rows[0]["findings"][0].removeprefix("slow_rank-")
    assert f"Slow rank {rank}" in page
    assert f"慢卡 {rank}" in page


@pytest.mark.parametrize("content", [b'{"a\n', b"{}", b"[1]", b"\xff", b"[" * 100_000, b'{"schema": "x/0"}'])
def test_damaged_findings_cost_a_trend_one_row(
    slow_output: Path, tmp_path: Path, content: bytes, capsys: Capsys
) -> None:
    for name in ("good", "bad"):
        shutil.copytree(slow_output, tmp_path / name)
    (tmp_path / "bad" / "findings.json").write_bytes(content)
    (tmp_path / "none").mkdir()
    directories = [str(tmp_path), str(tmp_path / "none")]
    page = tmp_path / "trend.html"
    assert main(["trend", *directories, "--json", "--page", str(page)]) == 3
    rows = {row["problem"] is None: row for row in json.loads(capsys.readouterr().out)}
    assert "slow_rank-3" in rows[True]["findings"]
    assert rows[False]["verdict"] == "unknown"
    assert main(["trend", *directories, "--lang", "en"]) == 3
    said = capsys.readouterr().out
    assert "bad/findings.json: " in said
    assert "none: no findings.json with tables/ in it" in said
    assert "Error(" not in said
    assert "bad/findings.json: " in page.read_text()
    assert main(["trend", str(tmp_path / "bad")]) == 1
    assert "bad/findings.json: " in capsys.readouterr().err


def test_a_damaged_table_costs_the_page_of_a_trend_one_row(
    slow_output: Path, tmp_path: Path, capsys: Capsys
) -> None:
    for name in ("good", "bad"):
        shutil.copytree(slow_output, tmp_path / name)
    (tmp_path / "bad" / "tables" / "steps.parquet").write_bytes(b"PAR1")
    assert main(["trend", str(tmp_path), "--page", str(tmp_path / "trend.html")]) == 3
    assert "steps.parquet: not a readable table" in (tmp_path / "trend.html").read_text()


def test_a_directory_without_an_output_is_refused_with_what_to_keep(tmp_path: Path, capsys: Capsys) -> None:
    assert main(["trend", str(tmp_path)]) == 1
    assert "keep findings.json and tables/" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"keep findings\.json and tables/"):
        load_result(tmp_path)


def test_what_was_written_is_read_back_as_it_was(analysed: ca.Run, slow_output: Path) -> None:
    again = load_result(slow_output)
    assert again.document == analysed.document
    for name, table in analysed.tables.items():
        assert again.tables[name].equals(table), name
    assert {one.group: one.ranks for one in again.topology.groups.values()} == {
        one.group: one.ranks for one in analysed._result.topology.groups.values() if len(one.ranks) > 1
    }


def test_a_damaged_table_is_named(healthy_output: Path, tmp_path: Path) -> None:
    shutil.copytree(healthy_output, tmp_path / "cut")
    (tmp_path / "cut" / "tables" / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"steps\.parquet: not a readable table"):
        load_result(tmp_path / "cut")


def test_a_table_without_its_ranks_is_named(healthy_output: Path, tmp_path: Path) -> None:
    shutil.copytree(healthy_output, tmp_path / "other")
    file = tmp_path / "other" / "tables" / "ranks.parquet"
    pq.write_table(pq.read_table(file).drop(["rank"]), file)
    with pytest.raises(InputError, match=r"ranks\.parquet: column 'rank' is missing"):
        load_result(tmp_path / "other")


def test_our_own_output_is_a_baseline(slow_run: Path, healthy_output: Path, tmp_path: Path) -> None:
    argv = [str(slow_run), "--baseline", str(healthy_output), "--output", str(tmp_path), "--no-insight", "-q"]
    assert main(argv) == 0
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert "slow_rank" in [one["kind"] for one in found["new"]]
    certain = {one["name"] for one in found["changes"] if one["is_certain"]}
    assert {"step", "rank 3"} <= certain


@pytest.mark.slow
def test_a_regression_ends_with_4_and_an_improvement_does_not(
    slow_run: Path, slow_output: Path, healthy_run: Path, healthy_output: Path
) -> None:
    worse = [str(slow_run), "--baseline", str(healthy_output), "--no-output", "-q", "--fail-on"]
    assert main([*worse, "regression"]) == 4
    assert main([*worse, "regression:60"]) == 0
    better = [str(healthy_run), "--baseline", str(slow_output), "--no-output", "-q"]
    assert main([*better, "--fail-on", "regression"]) == 0
    assert main([str(slow_run), "--no-output", "--fail-on", "regression"]) == 2


@pytest.mark.slow
def test_a_job_that_cannot_be_compared_is_no_sign_of_health(
    slow_run: Path, slow_output: Path, tmp_path: Path
) -> None:
    other = write_small_run(tmp_path / "other", dp=4, faults=())
    for baseline in (slow_run, slow_output):
        argv = [str(other), "--baseline", str(baseline), "--no-output", "-q", "--fail-on", "regression"]
        assert main(argv) == 3, baseline


def packed(run: Path, path: Path) -> Path:
    """An archive of a run, in the form that the name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(one for one in run.rglob("*") if one.is_file()):
                archive.write(file, file.relative_to(run.parent))
        return path
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz" if path.suffix == ".gz" else "w") as tar:
        tar.add(run, run.name)
    is_zstd = path.suffix == ".zst"
    path.write_bytes(zstandard.compress(content.getvalue()) if is_zstd else content.getvalue())
    return path


@pytest.mark.parametrize("name", ["run1.tar", "run1.tar.gz", "run1.tar.zst", "run1.zip"])
def test_an_archive_gives_the_findings_of_what_is_in_it(
    slow_run: Path, slow_output: Path, tmp_path: Path, name: str, capsys: Capsys
) -> None:
    archive = packed(slow_run, tmp_path / name)
    assert main([str(archive), "--json", "-q", "--no-report"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == json.loads((slow_output / "findings.json").read_text())["findings"]
    assert found["run"]["command"] == f"cluster-analyse {archive}"
    assert (tmp_path / "run1.analysis" / "findings.json").is_file()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt"])
def test_an_archive_cannot_write_outside(tmp_path: Path, name: str, capsys: Capsys) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert main([str(tmp_path / "bad.tar"), "-q"]) == 1
    assert "leads out of it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cut.tar", "cut.tar.gz", "cut.tar.zst", "cut.zip"])
def test_a_damaged_archive_is_named(slow_run: Path, tmp_path: Path, name: str, capsys: Capsys) -> None:
    path = packed(slow_run, tmp_path / name)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    assert main([str(path), "-q"]) == 1
    assert f"{path}: damaged, or no archive" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("never", FailOn()),
        ("warning,unknown", FailOn(frozenset({"warning", "critical"}), unknown=True)),
        ("regression", FailOn(regression_share=0.0)),
        ("regression:2.5%", FailOn(regression_share=0.025)),
    ],
)
def test_fail_on_reads_words(text: str, wanted: FailOn) -> None:
    assert fail_on(text) == wanted


@pytest.mark.parametrize("text", ["often", "regression:much", "", "unknown:3"])
def test_fail_on_lists_its_words(text: str) -> None:
    with pytest.raises(ValueError, match="never, warning, critical, unknown, regression"):
        fail_on(text)


def test_fail_on_unknown_tells_could_not_tell_from_healthy(slow_run: Path, healthy_run: Path) -> None:
    few = [str(slow_run), "--no-output", "-q", "--ranks", "0"]
    assert main(few) == 0
    assert main([*few, "--fail-on", "unknown"]) == 4
    assert main([str(healthy_run), "--no-output", "-q", "--fail-on", "unknown,warning"]) == 0


def test_help_begins_with_three_examples() -> None:
    text = make_parser().format_help()
    assert text.index("examples:") < text.index("positional arguments")
    assert sum(line.startswith("  cluster-analyse run1") for line in text.splitlines()) == 3


def test_progress_is_a_bar_with_what_it_does() -> None:
    assert bar("reading ranks", 16, 64) == "reading ranks █████░░░░░░░░░░░░░░░ 16/64"
    assert bar("detecting", 0, 1) == "detecting …"


# `--all-parts`: each job of a tree with a report of its own, and one page that leads to them.


@pytest.fixture
def two_jobs(tmp_path: Path) -> Path:
    for role in ("actor", "rollout <1>"):
        for rank in range(2):
            write_capture(tmp_path / "prof" / role, rank, f"n_{rank}_2025112610053020{rank}_ascend_pt")
    return tmp_path / "prof"


def judge(path: Path, *more: str) -> int:
    return main([str(path), "--no-insight", "--scheduler", "threads", *more])


def test_each_part_has_findings_and_the_page_leads_to_all(two_jobs: Path, capsys: Capsys) -> None:
    judge(two_jobs, "--all-parts", "--json", "-q")
    shown = json.loads(capsys.readouterr().out)
    assert sorted(shown["parts"]) == ["actor", "rollout <1>"]
    assert {one["run"]["ranks"] for one in shown["parts"].values()} == {2}
    output = two_jobs / "cluster_analysis_output"
    index = json.loads((output / "parts.json").read_text())
    page = (output / "report.html").read_text()
    assert [one["folder"] for one in index["parts"]] == ["parts/actor", "parts/rollout-1"]
    for part in index["parts"]:
        assert (output / part["folder"] / "findings.json").is_file()
        assert f'href="{part["folder"]}/report.html"' in page
    assert "rollout &lt;1&gt;" in page


@pytest.mark.slow
def test_what_an_earlier_call_of_other_parts_wrote_stays_and_is_told_to_be_older(
    two_jobs: Path, capsys: Capsys
) -> None:
    judge(two_jobs, "--all-parts", "-q")
    judge(two_jobs, "--part", "actor")
    assert "From an earlier call, and not renewed: parts/\n" in capsys.readouterr().err
    output = two_jobs / "cluster_analysis_output"
    assert (output / "parts").is_dir()
    assert (output / "parts.json").is_file()
    assert json.loads((output / "findings.json").read_text())["run"]["command"].endswith("--part actor")
    judge(two_jobs, "--all-parts")
    assert "From an earlier call, and not renewed: tables/, findings.json\n" in capsys.readouterr().err


def test_all_parts_and_one_part_exclude_each_other(two_jobs: Path, capsys: Capsys) -> None:
    assert main([str(two_jobs), "--all-parts", "--part", "actor"]) == 2
    assert "leave one of them out" in capsys.readouterr().err
