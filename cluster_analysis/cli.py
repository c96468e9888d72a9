"""`cluster-analyse RUN`: options in, result on stdout, everything else on stderr.

Heavy modules are imported by the functions that need them: `--help` and a typing error cost nothing.
"""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_analysis.lean_imports import (
    collect_from_now_on,
    keep_data_sets_out,
    keep_pandas_out,
)
from cluster_analysis.outputs.registry import FILES, TEXTS, text_reporter
from cluster_run.command_line import exit_codes_help, interruptible, language_of, named_path, positive_number
from cluster_run.errors import ClusterError, ExitCode, InputError, UsageError, worst
from cluster_run.ids import Rank, Step, format_number_ranges, parse_number_ranges
from cluster_run.layout import REPORT_NAME
from cluster_run.standard_streams import write_result
from cluster_run.version import VERSION

if TYPE_CHECKING:
    from cluster_analysis.engine.read_ranks import Progress
    from cluster_analysis.options import AnalyseOptions
    from cluster_analysis.outputs.everything import Written
    from cluster_analysis.result import AnalysisResult, Shown
    from cluster_analysis.sentences.phrase import Language
    from cluster_analysis.tables.model import Capture

_WHAT_IS_LEFT = "the older output is as it was"
_SEVERITIES = {"never": frozenset[str](), "warning": {"warning", "critical"}, "critical": {"critical"}}


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code. Nothing is raised."""
    try:
        arguments = make_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        with interruptible(_WHAT_IS_LEFT):
            return int(_run(arguments))
    except ClusterError as error:
        print(f"cluster-analyse: {error}", file=sys.stderr)
        return int(error.exit_code)
    except Exception as error:
        if arguments.verbose:
            traceback.print_exc()
        text = " ".join(str(error).split()) or "no message"
        print(
            f"cluster-analyse: a mistake of ours: {type(error).__name__}: {text}"
            + ("" if arguments.verbose else " (-v shows where; please report it)"),
            file=sys.stderr,
        )
        return int(ExitCode.FAILED)


def _run(arguments: argparse.Namespace) -> ExitCode:
    options = _options(arguments)
    for path in (options.run, options.baseline):
        if path is not None:
            _check_input(path)
    from cluster_analysis.engine.memory import return_large_blocks  # noqa: PLC0415
    from cluster_analysis.output_folder import check_output_folder  # noqa: PLC0415

    check_output_folder(options.output_folder, options.run)
    ahead = _looking_ahead(options)
    keep_pandas_out()
    keep_data_sets_out()
    return_large_blocks()
    from cluster_analysis.pipeline import examined  # noqa: PLC0415
    from cluster_analysis.progress import progress_on  # noqa: PLC0415
    from cluster_analysis.sources.compiled.reader import in_use  # noqa: PLC0415

    collect_from_now_on()
    progress = progress_on(sys.stderr, quiet=arguments.quiet, verbose=arguments.verbose)
    tell = _importing_meanwhile(progress.tell, *_modules_for_later(options, arguments.format))
    with examined(options, tell, None if arguments.quiet else progress.remark, *ahead) as one:
        from cluster_analysis.outputs.everything import write_everything  # noqa: PLC0415

        progress.say(f"{len(one.sources)} captures read with {one.engine.name}, {in_use()}")
        written = write_everything(one, tell)
    progress.end()
    write_result(
        text_reporter(arguments.format).text(
            written.reported, _shown(arguments.lang, is_verbose=arguments.verbose > 0)
        )
    )
    if not arguments.quiet:
        _say_where(options, written)
    if arguments.open and options.write_report:
        import webbrowser  # noqa: PLC0415

        webbrowser.open((options.output_folder / REPORT_NAME).resolve().as_uri())
    return _exit_code(written.reported.result, arguments.fail_on)


def _looking_ahead(options: AnalyseOptions) -> list[Callable[[Path, str | None], Capture]]:
    """Begin to look for captures while NumPy, Arrow and the rest are imported; nothing where they are."""
    if "cluster_analysis.pipeline" in sys.modules:
        return []
    from cluster_analysis.discovery.ahead import Ahead  # noqa: PLC0415

    return [Ahead(options.run, options.capture).found]


def _modules_for_later(options: AnalyseOptions, output_format: str) -> tuple[list[str], list[str]]:
    """Return the modules that judge and report, and those that show the result: some 40 and 10 ms to import.

    The latter are for the time when the last step is reduced.
    """
    reports = [one.module for one in FILES if one.is_wanted(options)]
    insight = [] if options.write_insight is False else ["cluster_analysis.insight.files"]
    return (
        ["cluster_analysis.replay.graph", "cluster_analysis.outputs.everything", *reports, *insight],
        [TEXTS[output_format]],
    )


def _importing_meanwhile(tell: Progress, *modules: list[str]) -> Progress:
    """Return `tell` that imports modules while workers are busy, so that nobody waits for them later.

    Each list has its own kind of work: the first is imported beside the first work of which some is done, the
    last beside the last task of the next, when a processor is idle.
    """
    waiting = list(modules)
    last = ""

    def told(what: str, done: int, total: int) -> None:
        nonlocal last
        tell(what, done, total)
        if done and waiting and what != last and (len(waiting) > 1 or done + 1 >= total):
            last = what
            gc.disable()
            for name in waiting.pop(0):
                import_module(name)
            collect_from_now_on()

    return told


def _shown(language: str | None, *, is_verbose: bool) -> Shown:
    from cluster_analysis.result import Shown  # noqa: PLC0415

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return Shown(_language(language), shutil.get_terminal_size().columns, colour, is_verbose)


def _language(wanted: str | None) -> Language:
    """Return the language asked for, else that of the environment, as far as stdout can write it."""
    if wanted is None:
        try:
            "慢卡".encode(sys.stdout.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return "en"
    return language_of(wanted)


def _say_where(options: AnalyseOptions, written: Written) -> None:
    folder = options.output_folder
    print(
        f"Written to {folder}/" + (f" (open {folder / REPORT_NAME})" if options.write_report else ""),
        file=sys.stderr,
    )
    if written.left_out_bytes is not None:
        print(
            f"No files for MindStudio Insight: they would take about {written.left_out_bytes / 1e6:,.0f} MB. "
            "--insight writes them.",
            file=sys.stderr,
        )
    if written.ranks_without_operators:
        ranks = format_number_ranges(written.ranks_without_operators)
        run = shlex.quote(str(options.run))
        print(
            f"cluster_communication.json for MindStudio Insight has totals, but no single operators of ranks "
            f"{ranks}, which were collected as columns. Their files: "
            f"cluster-collect --like {run} --ranks {ranks}",
            file=sys.stderr,
        )
    from cluster_analysis.output_folder import INSIGHT_CACHE_NAMES  # noqa: PLC0415

    cache = options.run / INSIGHT_CACHE_NAMES[0]
    if cache.exists():
        print(f"MindStudio Insight shows older figures until {cache} is deleted.", file=sys.stderr)


def _exit_code(result: AnalysisResult, fail_on: str) -> ExitCode:
    document = result.document
    codes = [ExitCode.DONE]
    if document.problems or document.run.ranks < document.run.expected_ranks:
        codes.append(ExitCode.INCOMPLETE)
    if any(finding.severity in _SEVERITIES[fail_on] for finding in document.findings):
        codes.append(ExitCode.FINDINGS)
    return worst(*codes)


def _check_input(run: Path) -> None:
    if not run.exists():
        raise InputError(f"{run}: no such directory")
    if not run.is_dir():
        raise InputError(f"{run}: a file, not a directory", "give the directory that holds the profiler data")
    if not os.access(run, os.R_OK | os.X_OK):
        raise InputError(f"{run}: cannot be read: permission denied")


def _options(arguments: argparse.Namespace) -> AnalyseOptions:
    from cluster_analysis.engine.memory import parse_size  # noqa: PLC0415
    from cluster_analysis.options import (  # noqa: PLC0415
        ADDRESS_PREFIXES,
        NAMED_SCHEDULERS,
        AnalyseOptions,
        TlsFiles,
    )
    from cluster_analysis.tables.model import Selection  # noqa: PLC0415

    steps, ranks = arguments.steps, arguments.ranks
    scheduler = arguments.scheduler
    if scheduler not in NAMED_SCHEDULERS and not scheduler.startswith(ADDRESS_PREFIXES):
        raise UsageError(
            f"unknown scheduler {scheduler!r}",
            f"one of {', '.join(NAMED_SCHEDULERS)}, or an address like tcp://host:8786",
        )
    tls_files = (arguments.tls_ca_file, arguments.tls_cert, arguments.tls_key)
    if any(tls_files) and not all(tls_files):
        raise UsageError("--tls-ca-file, --tls-cert and --tls-key are needed together")
    limit = parse_size(arguments.memory_limit) if arguments.memory_limit else None
    return AnalyseOptions(
        run=arguments.run,
        output=arguments.output,
        baseline=arguments.baseline,
        selection=Selection(
            steps=None if steps is None else frozenset(map(Step, parse_number_ranges(steps))),
            ranks=None if ranks is None else frozenset(map(Rank, parse_number_ranges(ranks))),
        ),
        capture=arguments.capture,
        scheduler=scheduler,
        n_workers=arguments.workers,
        memory_limit_bytes=limit,
        scratch=arguments.scratch,
        tls=TlsFiles(*tls_files) if all(tls_files) else None,
        write_report=arguments.report,
        write_timeline=arguments.timeline,
        write_insight=False
        if arguments.insight is None and arguments.format == "json"
        else arguments.insight,
        show_addresses=arguments.show_addresses,
    )


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; the completions of shells are made of it, too."""
    parser = argparse.ArgumentParser(
        prog="cluster-analyse",
        description="Say what slowed a training job, and what it cost, from the profiler data of its ranks.",
        epilog=exit_codes_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "run", metavar="RUN", type=named_path, help="run directory, or any tree of profiler data"
    )
    what = parser.add_argument_group("what to analyse")
    what.add_argument("--steps", metavar="10-14", help="these steps only")
    what.add_argument("--ranks", metavar="0-63", help="these ranks only")
    what.add_argument(
        "--capture", metavar="NAME", help="this capture, where a rank has several (default: newest)"
    )
    what.add_argument("--baseline", metavar="RUN0", type=named_path, help="compare with this older run")
    out = parser.add_argument_group("what to write")
    out.add_argument("--output", metavar="DIR", type=named_path, help="default: RUN/cluster_analysis_output")
    out.add_argument(
        "--format",
        choices=tuple(TEXTS),
        default=next(iter(TEXTS)),
        help="of the result on stdout",
    )
    out.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )
    out.add_argument(
        "--lang",
        choices=("en", "zh"),
        help="language of the result on stdout, not of JSON (default: that of LC_ALL or LANG)",
    )
    out.add_argument(
        "--report", action=argparse.BooleanOptionalAction, default=True, help="write report.html"
    )
    out.add_argument(
        "--insight",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write the files for MindStudio Insight (default: yes, but not with --json, nor for more than "
        "512 MB of profiler data, as they are as large as that)",
    )
    out.add_argument("--timeline", action="store_true", help="write trace.json.gz for Perfetto")
    out.add_argument("--open", action="store_true", help="open report.html in a browser")
    out.add_argument(
        "--show-addresses", action="store_true", help="real host addresses in reports, not only mapped ids"
    )
    out.add_argument(
        "--fail-on",
        choices=tuple(_SEVERITIES),
        default="never",
        help="exit with 4 when there is such a finding (default: never)",
    )
    how = parser.add_argument_group("how to work")
    how.add_argument(
        "--scheduler",
        metavar="WHO",
        default="auto",
        help="auto, threads, processes, dask (with a dashboard), slurm, tcp://HOST:PORT or tls://HOST:PORT "
        "(default: auto, by size)",
    )
    how.add_argument("--workers", metavar="N", type=positive_number, help="threads, processes or Slurm jobs")
    how.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="tables above this go to files, like 4GiB (default: 16 MiB)",
    )
    how.add_argument(
        "--scratch", metavar="DIR", type=named_path, help="where those files go (default: TMPDIR)"
    )
    how.add_argument("--tls-ca-file", metavar="FILE", help="certificates for tls://: the authority's")
    how.add_argument("--tls-cert", metavar="FILE", help="… this client's")
    how.add_argument("--tls-key", metavar="FILE", help="… and its key")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr, and how well the replay fits"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    parser.add_argument("--version", action="version", version=f"cluster-analyse {VERSION}")
    return parser
