"""Run `cluster-analyse`: the result goes to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import webbrowser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cluster_analysis.archives import is_archive, output_next_to, unpacked
from cluster_analysis.discovery.discover import part_names
from cluster_analysis.engine.read_ranks import Progress
from cluster_analysis.options import AnalyseOptions, FailOn, TlsFiles, check_scheduler
from cluster_analysis.output_folder import INSIGHT_CACHE_NAMES, RENAMED_SUFFIX, check_output_folder
from cluster_analysis.pipeline import examined
from cluster_analysis.progress import ProgressLine, progress_on
from cluster_analysis.result import Reported, Shown
from cluster_analysis.sources.compiled.reader import in_use
from cluster_analysis.tables.model import Selection
from cluster_run.command_line import language_of
from cluster_run.errors import ExitCode, InputError, UsageError, worst
from cluster_run.ids import Rank, Step, format_number_ranges, parse_number_ranges
from cluster_run.layout import REPORT_NAME
from cluster_run.said.chinese import Language, translated
from cluster_run.standard_streams import write_result

if TYPE_CHECKING:
    from cluster_analysis.judge.baseline import Comparison
    from cluster_analysis.outputs.everything import Kept, Written


def run(arguments: argparse.Namespace) -> ExitCode:
    """Analyse what the arguments of the command line name, and say what was found.

    Raises:
        ClusterError: the arguments, the input or the place of the output cannot be used.
    """
    options = options_of(arguments)
    if not is_archive(options.run):
        return _run(arguments, options)
    with unpacked(options.run, options.scratch) as folder:
        output = options.output or output_next_to(options.run)
        return _run(arguments, replace(options, run=folder, archive=options.run, output=output))


def _run(arguments: argparse.Namespace, options: AnalyseOptions) -> ExitCode:
    for path in (options.run, options.baseline):
        if path is not None:
            _check_input(path)

    if not arguments.no_output:
        check_output_folder(options.output_folder, options.run)
    if arguments.all_parts:
        names = part_names(options.run)
        if len(names) > 1:
            return _run_all(arguments, options, names)
    progress = _progress_of(arguments)
    on_progress = _importing_meanwhile(progress.show)
    with examined(options, on_progress, None if arguments.quiet else progress.remark) as one:
        from cluster_analysis.outputs.everything import judge_only, write_everything  # noqa: PLC0415
        from cluster_analysis.outputs.registry import TEXTS  # noqa: PLC0415

        progress.say(f"{len(one.sources)} captures read with {one.engine.name}, {in_use()}")
        written = judge_only(one, on_progress) if arguments.no_output else write_everything(one, on_progress)
    progress.end()
    how = shown(arguments.lang, is_verbose=arguments.verbose > 0)
    write_result(TEXTS[arguments.format](written.reported, how))
    if not arguments.quiet and not arguments.no_output:
        _say_where(options, written, language_of(arguments.lang, sys.stdout))
    if arguments.open and options.write_report:
        webbrowser.open((options.output_folder / REPORT_NAME).resolve().as_uri())
    return exit_code(written.reported, arguments.fail_on)


def _run_all(arguments: argparse.Namespace, options: AnalyseOptions, names: tuple[str, ...]) -> ExitCode:
    """Judge all parts, and show what was found of each."""
    from cluster_analysis.outputs.all_parts import judge_all  # noqa: PLC0415 - as above
    from cluster_analysis.outputs.registry import TEXTS  # noqa: PLC0415

    progress = _progress_of(arguments)
    parts = judge_all(options, names, progress.show, None if arguments.quiet else progress.remark)
    progress.end()
    how = shown(arguments.lang, is_verbose=arguments.verbose > 0)
    texts = {
        name: f"{one}\n" if isinstance(one, str) else TEXTS[arguments.format](one, how)
        for name, one in parts.outcomes.items()
    }
    results = parts.results()
    if arguments.format == "json":
        found = {name: json.loads(texts[name]) for name in results}
        write_result(json.dumps({"parts": found}, ensure_ascii=False) + "\n")
    else:
        write_result("\n".join(f"## {name}\n\n{text}" for name, text in texts.items()))
    if not arguments.quiet:
        language = language_of(arguments.lang, sys.stdout)
        said = [f"Written to {options.output_folder}/", *_kept(parts.kept)]
        print(translated("\n".join(said), language), file=sys.stderr)
    lost = [ExitCode.INCOMPLETE] if len(results) < len(parts.outcomes) else []
    return worst(*lost, *(exit_code(Reported(one), arguments.fail_on) for one in results.values()))


def _importing_meanwhile(on_progress: Progress) -> Progress:
    """Return `on_progress` that imports what judges and tells while workers read: SciPy takes 0.15 s."""

    def report_progress(what: str, done: int, total: int) -> None:
        on_progress(what, done, total)
        if done:
            import_module("cluster_analysis.outputs.everything")

    return report_progress


def _progress_of(arguments: argparse.Namespace) -> ProgressLine:
    language = language_of(arguments.lang, sys.stderr)
    return progress_on(sys.stderr, language, quiet=arguments.quiet, verbose=arguments.verbose)


def shown(language: str | None, *, is_verbose: bool) -> Shown:
    """Return how stdout shows a text: the language asked for, or that of the environment; its width."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return Shown(language_of(language, sys.stdout), shutil.get_terminal_size().columns, colour, is_verbose)


def _say_where(options: AnalyseOptions, written: Written, language: Language) -> None:
    folder = options.output_folder
    opened = f" (open {folder / REPORT_NAME})" if options.write_report else ""
    said = [f"Written to {folder}/{opened}", *_kept(written.kept)]
    if written.left_out_bytes is not None:
        said.append(
            f"No files for MindStudio Insight: they would take about {written.left_out_bytes / 1e6:,.0f} MB. "
            "--insight writes them."
        )
    if written.ranks_without_operators:
        ranks = format_number_ranges(written.ranks_without_operators)
        run = shlex.quote(str(options.run))
        said.append(
            f"cluster_communication.json for MindStudio Insight has totals, but no single operators of ranks "
            f"{ranks}, which were collected as columns. Their files: "
            f"cluster-collect --like {run} --ranks {ranks}"
        )
    cache = options.run / INSIGHT_CACHE_NAMES[0]
    if cache.exists():
        said.append(f"MindStudio Insight shows older figures until {cache} is deleted.")
    print(translated("\n".join(said), language), file=sys.stderr)


def _kept(kept: Kept) -> Iterator[str]:
    if kept.older:
        yield f"From an earlier call, and not renewed: {', '.join(kept.older)}"
    if kept.of_others:
        yield f"Of another program, and renamed to NAME{RENAMED_SUFFIX}: {', '.join(kept.of_others)}"


def exit_code(given: Reported, wanted: FailOn) -> ExitCode:
    """Return what the command ends with; a comparison that could not be made is no sign of health."""
    document, codes = given.result.document, [ExitCode.DONE]
    if document.problems or document.run.ranks < document.run.expected_ranks:
        codes.append(ExitCode.INCOMPLETE)
    fails = any(finding.severity in wanted.severities for finding in document.findings)
    if wanted.regression_share is not None and given.comparison is not None:
        if given.comparison.refusals:
            codes.append(ExitCode.INCOMPLETE)
        fails |= is_regression(given.comparison, document.run.step_ms or 0.0, wanted.regression_share)
    if fails or (wanted.unknown and document.verdict == "unknown"):
        codes.append(ExitCode.FINDINGS)
    return worst(*codes)


def is_regression(comparison: Comparison, step_ms: float, least_share: float) -> bool:
    """Return whether the step is certainly longer, or a new finding costs, more than this share of it."""
    steps = [one for one in comparison.changes if one.what == "step" and one.is_certain]
    new = [one.after for one in comparison.findings if one.state == "new" and one.after is not None]
    costs = [max(one.cost_ms_per_step or 0.0, one.cost_high_ms or 0.0) for one in new]
    return any(one.change_share > least_share for one in steps) or any(
        cost > least_share * step_ms for cost in costs
    )


def _check_input(run: Path) -> None:
    if not run.exists():
        raise InputError(f"{run}: no such directory")
    if not run.is_dir():
        raise InputError(
            f"{run}: a file, not a directory",
            "give the directory that holds the profiler data, or an archive of it (--help names the forms)",
        )
    if not os.access(run, os.R_OK | os.X_OK):
        raise InputError(f"{run}: cannot be read: permission denied")


def options_of(arguments: argparse.Namespace) -> AnalyseOptions:
    """Return the options that the arguments name.

    Raises:
        UsageError: they contradict each other, or cannot be read.
    """
    steps, ranks = arguments.steps, arguments.ranks
    check_scheduler(arguments.scheduler)
    tls_files = (arguments.tls_ca_file, arguments.tls_cert, arguments.tls_key)
    if any(tls_files) and not all(tls_files):
        raise UsageError("--tls-ca-file, --tls-cert and --tls-key are needed together")
    if arguments.fail_on.regression_share is not None and arguments.baseline is None:
        raise UsageError("--fail-on regression needs --baseline RUN0")
    if arguments.no_output and (arguments.all_parts or arguments.open or arguments.timeline):
        raise UsageError("--no-output goes with none of --all-parts, --open and --timeline")
    if arguments.all_parts and (arguments.part is not None or arguments.baseline is not None):
        raise UsageError("--all-parts goes with neither --part nor --baseline", "leave one of them out")
    return AnalyseOptions(
        run=arguments.run,
        output=arguments.output,
        baseline=arguments.baseline,
        selection=Selection(
            steps=None if steps is None else frozenset(map(Step, parse_number_ranges(steps))),
            ranks=None if ranks is None else frozenset(map(Rank, parse_number_ranges(ranks))),
        ),
        part=arguments.part,
        scheduler=arguments.scheduler,
        n_workers=arguments.workers,
        memory_limit_bytes=arguments.memory_limit,
        scratch=arguments.scratch,
        tls=TlsFiles(*tls_files) if all(tls_files) else None,
        write_report=arguments.report and not arguments.no_output,
        write_timeline=arguments.timeline,
        write_insight=False
        if arguments.no_output or (arguments.insight is None and arguments.format == "json")
        else arguments.insight,
        show_addresses=arguments.show_addresses,
        fleet=arguments.fleet,
    )
