"""The command line forgives: nothing is undone, archives open, earlier outputs are told again."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

import cluster_analysis as ca
from cluster_analysis.cli import main, make_parser
from cluster_analysis.options import FailOn, fail_on
from cluster_analysis.progress import bar
from cluster_run.errors import InputError
from cluster_simulate.cli import main as simulate
from tests.analysis.command.places import SIZES
from tests.analysis.runs import digests


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forgiving") / "run1"
    assert simulate([str(path), *SIZES, "--scenario", "slow_rank:1.3@5", "-q"]) == 0
    return path


@pytest.fixture(scope="module")
def output(run: Path) -> Path:
    path = run.parent / "out"
    assert main([str(run), "--output", str(path), "--timeline", "-q"]) == 0
    return path


def test_a_shorter_call_deletes_nothing_that_it_does_not_write(
    run: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name for path in output.iterdir()}
    assert main([str(run), "--output", str(output), "--json", "--no-report"]) == 0
    assert {path.name for path in output.iterdir()} == before
    assert "From an earlier call, and not renewed: report.html, trace.json.gz" in capsys.readouterr().err


def test_a_query_writes_nothing(run: Path, output: Path, tmp_path: Path) -> None:
    before, of_run = digests(output), digests(run)
    assert main([str(run), "--output", str(tmp_path / "none"), "--no-output", "-q"]) == 0
    assert main(["report", str(output)]) == 0
    assert main(["trend", str(output)]) == 0
    assert not (tmp_path / "none").exists()
    assert (digests(output), digests(run)) == (before, of_run)


def test_report_tells_an_output_as_the_call_that_wrote_it(
    run: Path, output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("terminal", "markdown", "json"):
        assert main([str(run), "--no-output", "--format", form, "-q"]) == 0
        told = capsys.readouterr().out
        assert main(["report", str(output), "--format", form]) == 0
        assert capsys.readouterr().out == told
    assert main(["report", str(output), "--page", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "slow rank 5" in page.lower()


def test_trend_has_a_row_a_run_in_the_order_of_their_recording(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, captured in (("late", "2026-02-01T00:00:00"), ("early", "2026-01-01T00:00:00")):
        shutil.copytree(output, tmp_path / name)
        document = json.loads((output / "findings.json").read_text())
        document["run"] |= {"captured": captured, "name": name}
        (tmp_path / name / "findings.json").write_text(json.dumps(document))
    assert main(["trend", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["findings"]) for row in rows] == [
        ("early", ["slow_rank-5"]),
        ("late", ["slow_rank-5"]),
    ]
    assert main(["trend", str(tmp_path), "--lang", "en"]) == 0
    head, first, _ = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "run"
    assert "slow_rank-5" in first


def test_a_directory_without_an_output_is_refused_with_what_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trend", str(tmp_path)]) == 1
    assert "keep findings.json and tables/" in capsys.readouterr().err


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
    run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "--no-output", "--json", "-q"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    archive = packed(run, tmp_path / name)
    assert main([str(archive), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == wanted["findings"]
    assert found["run"]["command"] == f"cluster-analyse {archive}"
    assert (tmp_path / "run1.analysis" / "findings.json").is_file()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt"])
def test_an_archive_cannot_write_outside(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert main([str(tmp_path / "bad.tar"), "-q"]) == 1
    assert "leads out of it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cut.tar", "cut.tar.gz", "cut.tar.zst", "cut.zip"])
def test_a_damaged_archive_is_named(
    run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = packed(run, tmp_path / name)
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


def test_fail_on_unknown_tells_could_not_tell_from_healthy(run: Path, tmp_path: Path) -> None:
    few = [str(run), "--no-output", "-q", "--ranks", "0"]
    assert main(few) == 0
    assert main([*few, "--fail-on", "unknown"]) == 4
    healthy = tmp_path / "healthy"
    assert simulate([str(healthy), *SIZES, "-q"]) == 0
    assert main([str(healthy), "--no-output", "-q", "--fail-on", "unknown,warning"]) == 0


def test_a_regression_ends_with_4_and_an_improvement_does_not(
    run: Path, output: Path, tmp_path: Path
) -> None:
    assert simulate([str(tmp_path / "healthy"), *SIZES, "-q"]) == 0
    assert main([str(tmp_path / "healthy"), "--output", str(tmp_path / "kept"), "-q", "--no-insight"]) == 0
    worse = [str(run), "--baseline", str(tmp_path / "kept"), "--no-output", "-q", "--fail-on"]
    assert main([*worse, "regression"]) == 4
    assert main([*worse, "regression:60"]) == 0
    better = [str(tmp_path / "healthy"), "--baseline", str(output), "--no-output", "-q"]
    assert main([*better, "--fail-on", "regression"]) == 0
    assert main([str(run), "--no-output", "--fail-on", "regression"]) == 2


def test_a_job_that_cannot_be_compared_is_no_sign_of_health(run: Path, tmp_path: Path) -> None:
    assert simulate([str(tmp_path / "other"), *SIZES[:-4], "--dp", "2", "--steps", "5", "-q"]) == 0
    other = [str(tmp_path / "other"), "--baseline", str(run), "--no-output", "-q", "--fail-on", "regression"]
    assert main(other) == 3


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    text = make_parser().format_help()
    assert text.index("examples:") < text.index("positional arguments")
    assert sum(line.startswith("  cluster-analyse run1") for line in text.splitlines()) == 3


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("module", ["analysis", "collect", "hook", "simulate"])
def test_every_command_prints_its_completions(module: str, shell: str) -> None:
    argv = [sys.executable, "-m", f"cluster_{module}", "--print-completion", shell]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "version" in done.stdout


def test_collect_says_what_a_bare_word_was_meant_for(tmp_path: Path) -> None:
    for word, option in (("hosts.yaml", "--inventory"), (str(tmp_path), "--like"), ("node[1-4]", "--hosts")):
        argv = [sys.executable, "-m", "cluster_collect", word]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"did you mean: cluster-collect {option} " in done.stderr
        assert len(done.stderr.splitlines()) <= 5


def test_progress_is_a_bar_with_what_it_does() -> None:
    assert bar("reading ranks", 16, 64) == "reading ranks █████░░░░░░░░░░░░░░░ 16/64"
    assert bar("detecting", 0, 1) == "detecting …"


def test_the_api_shows_and_explains_itself(run: Path, output: Path) -> None:
    assert {"Run", "analyse", "analyze", "load", "__version__"} <= set(dir(ca))
    assert ca.analyze is ca.analyse
    again = ca.load(output)
    assert again.document == ca.analyse(run).document
    assert list(ca.load(run.parent / "out").findings.id) == list(again.findings.id)
    with pytest.raises(KeyError, match="there are 10-14"):
        again.step(99)
    with pytest.raises(KeyError, match="there are advice"):
        again.frame("nope")
    with pytest.raises(InputError, match="no such directory"):
        ca.load(run.parent / "gone")
