"""`cluster-analyse RUN`: the command line. `command` does the work, and is imported for a run alone."""

from __future__ import annotations

import argparse
import os
import traceback
from collections.abc import Sequence

from cluster_analysis.arrow_alone import import_arrow_alone
from cluster_analysis.options import (
    MAX_INSIGHT_BYTES,
    MEMORY_LIMIT_BYTES,
    N_SLURM_JOBS,
    NAMED_SCHEDULERS,
    FailOn,
    add_format,
    fail_on,
)
from cluster_run.command_line import (
    Parser,
    add_about,
    add_language,
    exit_code_of,
    exit_codes_help,
    named_path,
    positive_number,
    told,
)
from cluster_run.errors import ClusterError, in_one_line
from cluster_run.findings import FAILING
from cluster_run.ids import parse_size
from cluster_run.layout import FLEET_VARIABLE

#: Queries that need no raw data. A directory of that name is `./report`.
QUERIES = ("report", "trend")
_EXAMPLES = """\
examples:
  cluster-analyse run1
  cluster-analyse run1 --baseline run0 --fail-on regression:5
  cluster-analyse run1 --steps 12-14 --json --no-output

without the raw data, from outputs of earlier calls:
  cluster-analyse report OUT       the findings again; --page FILE writes the page
  cluster-analyse trend DIR...     step, loss and findings by run; --page FILE draws them
"""
_WHAT_IS_LEFT = "the older output is as it was"


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code. Nothing is raised."""
    if argv and argv[0] in QUERIES:
        from cluster_analysis.queries import query  # noqa: PLC0415 - imports what reports

        return query(argv)
    try:
        arguments = make_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)

    def work() -> int:
        import_arrow_alone()
        from cluster_analysis.command import run  # noqa: PLC0415 - 0.3 s that `--help` does not need

        return run(arguments)

    try:
        return exit_code_of("cluster-analyse", work, _WHAT_IS_LEFT, arguments.lang)
    except Exception as error:
        if arguments.verbose:
            traceback.print_exc()
        text = in_one_line(error, "no message")
        advice = "please report it" if arguments.verbose else "-v shows where; please report it"
        mistake = ClusterError(f"a mistake of ours: {type(error).__name__}: {text}", advice)
        return told("cluster-analyse", mistake, arguments.lang)


def _fail_on(text: str) -> FailOn:
    try:
        return fail_on(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size(text: str) -> int:
    if not (size := parse_size(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 512M or 2GiB")
    return size


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; the completions of shells are made of it, too."""
    parser = Parser(
        prog="cluster-analyse",
        usage="cluster-analyse RUN [options]\n       cluster-analyse report OUT\n"
        "       cluster-analyse trend DIR...",
        description=f"Say what slowed a training job, and what it cost.\n\n{_EXAMPLES}",
        epilog=exit_codes_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        type=named_path,
        help="run directory, any tree of profiler data, or a .tar, .tar.gz, .tar.zst or .zip of it",
    )
    _add_what(parser)
    _add_output(parser)
    _add_work(parser)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr, and how well the replay fits"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only errors on stderr")
    add_about(parser)
    return parser


def _add_what(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which ranks, steps and parts are read."""
    what = parser.add_argument_group("what to analyse")
    what.add_argument("--steps", metavar="10-14", help="these steps only")
    what.add_argument("--ranks", metavar="0-63", help="these ranks only")
    what.add_argument(
        "--part",
        "--capture",
        dest="part",
        metavar="NAME",
        help="this part, where there are several jobs or windows (default: the newest of the largest)",
    )
    what.add_argument(
        "--all-parts", action="store_true", help="each part, with a report of its own and a page of all"
    )
    what.add_argument("--baseline", metavar="RUN0", type=named_path, help="compare with this older run")
    what.add_argument(
        "--fleet",
        metavar="DB",
        default=os.environ.get(FLEET_VARIABLE, ""),
        help="a database of cluster-fleet: what other runs know of these devices counts, and is quoted "
        f"(default: ${FLEET_VARIABLE})",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options for outputs and remarks."""
    out = parser.add_argument_group("what to write")
    out.add_argument("--output", metavar="DIR", type=named_path, help="default: RUN/cluster_analysis_output")
    add_format(out)
    add_language(out, " of the result on stdout, not of JSON")
    out.add_argument("--report", action=argparse.BooleanOptionalAction, help="write report.html")
    # Not beside its help, to which Python 3.10 would add it.
    parser.set_defaults(report=True)
    out.add_argument(
        "--insight",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write the files for MindStudio Insight (default: yes, but not with --json, nor for more than "
        f"{MAX_INSIGHT_BYTES // 10**6} MB of profiler data, as they are as large as that)",
    )
    out.add_argument("--timeline", action="store_true", help="write trace.json.gz for Perfetto")
    out.add_argument("--open", action="store_true", help="open report.html in a browser")
    out.add_argument(
        "--show-addresses", action="store_true", help="real host addresses in reports, not only mapped ids"
    )
    out.add_argument("--no-output", action="store_true", help="write no file, only the result on stdout")
    out.add_argument(
        "--fail-on",
        metavar="WHEN",
        type=_fail_on,
        default=FailOn(),
        help=f"exit with 4 when there is such a finding: {' or '.join([*FAILING][1:])}; unknown: when "
        "the verdict is unknown; regression[:PERCENT]: when the step is longer than the baseline's, or a new "
        "finding costs more than that; several with commas (default: never)",
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what does the work."""
    how = parser.add_argument_group("how to work")
    how.add_argument(
        "--scheduler",
        metavar="WHO",
        default="auto",
        help=f"{', '.join(NAMED_SCHEDULERS)}, tcp://HOST:PORT or tls://HOST:PORT "
        "(default: auto, by size; dask has a dashboard)",
    )
    how.add_argument(
        "--workers",
        metavar="N",
        type=positive_number,
        help=f"threads, processes or Slurm jobs (default: one a processor; {N_SLURM_JOBS} Slurm jobs)",
    )
    how.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=_size,
        default=f"{MEMORY_LIMIT_BYTES >> 20}MiB",
        help="tables above this go to files, like 4GiB (default: %(default)s)",
    )
    how.add_argument(
        "--scratch", metavar="DIR", type=named_path, help="where those files go (default: TMPDIR)"
    )
    how.add_argument("--tls-ca-file", metavar="FILE", help="certificates for tls://: the authority's")
    how.add_argument("--tls-cert", metavar="FILE", help="… this client's")
    how.add_argument("--tls-key", metavar="FILE", help="… and its key")
