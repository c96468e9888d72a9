"""How well the detection names culprits and costs, on jobs with known faults.

    python -m benchmarks.detection [--model NAME] [--seeds report|develop] [--faults N] [--healthy N]

Prints one table for plain and one for hard jobs of each source: the project's simulator, and the models
that share nothing with it; then what is said of a real trace. Beside this detection stand rules of the field,
three on the simulator's jobs, and of those the 5 % spread on the models' jobs.
`develop` seeds are for looking at single jobs; `report` seeds are only ever looked at in sum.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence

from benchmarks.detection import modelled, no_matrix, real_trace, simulated
from benchmarks.detection.scoring import Outcome, score
from benchmarks.detection.tables import print_table

FIRST_SEED = {"develop": 1_000, "report": 700_000}
SOURCES = (simulated.NAME, *modelled.MODELS)
FAULTS_HELP = (
    "faulty jobs of each source and mode, of each class in turn; with --class the others are left out of "
    "them, and no more are made of it (default %(default)s)"
)
#: One job: its source, its mode, its seed, and the class of its fault.
Work = tuple[str, str, int, "str | None"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables."""
    options_of = parser(__doc__)
    options = options_of.parse_args(arguments)
    work = chosen(options, options_of)
    begun = time.monotonic()
    with multiprocessing.Pool(options.processes, maxtasksperchild=20) as pool:
        outcomes = []
        for outcome in pool.imap_unordered(judge_job, work):
            outcomes.append(outcome)
            if options.seeds == "develop" and outcome.line:
                print(outcome.line, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(work)} jobs", end="", file=sys.stderr)
    print_tables(work, outcomes)
    if options.model in (real_trace.NAME, "all"):
        real_trace.print_trace()
    seconds = time.monotonic() - begun
    first = FIRST_SEED[options.seeds] + options.skip
    print(f"\n{len(work)} jobs in {seconds:.0f} s, {options.seeds} seeds from {first}")
    return 0


def print_tables(work: Sequence[Work], outcomes: Sequence[Outcome]) -> None:
    """Print a table for each source and mode."""
    for source, mode in dict.fromkeys((source, mode) for source, mode, _, _ in work):
        some = [one for one in outcomes if (one.source, one.mode) == (source, mode)]
        print_table(sorted(some, key=lambda one: (one.seed, one.fault_class)))


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the options that choose jobs."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--model", choices=(*SOURCES, real_trace.NAME, "all"), default="all")
    options.add_argument("--seeds", choices=sorted(FIRST_SEED), default="report")
    options.add_argument("--faults", type=int, default=108, help=FAULTS_HELP)
    options.add_argument("--healthy", type=int, default=60, help="healthy jobs of each source and mode")
    options.add_argument("--skip", type=int, default=0, help="leave out seeds that were looked at before")
    options.add_argument("--class", dest="fault_class", help="of the faulty jobs only those of this class")
    options.add_argument("--mode", choices=("plain", "hard", "both"), default="both")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument(
        "--without-matrix", action="store_true", help="the same jobs, none with a communication_matrix.json"
    )
    return options


def chosen(options: argparse.Namespace, options_of: argparse.ArgumentParser) -> list[Work]:
    """Return the jobs that options ask for; a class that none has is a mistake of usage."""
    sources = [one for one in SOURCES if options.model in (one, "all")]
    work = [one for source in sources for one in work_of(source, options)]
    wanted = options.fault_class
    names = sorted({name for source in sources for name in classes_of(source)})
    if wanted is not None and wanted not in names:
        options_of.error(
            f"--class {wanted!r} is none of these: {'; '.join(names) or 'a real trace has none'}"
        )
    if wanted is not None and all(fault_class is None for *_, fault_class in work):
        options_of.error(f"none of {options.faults} --faults is of --class {wanted!r}: ask for more")
    return work


def classes_of(source: str) -> Sequence[str]:
    """Return the classes of faults that jobs of a source have."""
    classes = simulated.FAULTS if source == simulated.NAME else modelled.MODELS[source].FAULT_CLASSES
    return tuple(classes)


def work_of(source: str, options: argparse.Namespace) -> list[Work]:
    """Return the jobs of one source: classes of faults in turn, then healthy jobs, each with its own seed."""
    classes = classes_of(source)
    first, skip = FIRST_SEED[options.seeds], options.skip
    work: list[Work] = []
    suffix = no_matrix.SUFFIX if options.without_matrix else ""
    for base, mode in ((0, "plain"), (100_000, "hard")):
        if options.mode in (mode, "both"):
            faulty = [
                (first + base + n, classes[n % len(classes)]) for n in range(skip, skip + options.faults)
            ]
            shown = mode + suffix
            work += [(source, shown, seed, one) for seed, one in faulty if options.fault_class in (None, one)]
            work += [(source, shown, first + base + n, None) for n in range(skip, skip + options.healthy)]
    return work


def judge_job(work: Work) -> Outcome:
    """Make one job, judge it, and hold the answer against the truth."""
    source, mode, seed, fault_class = work
    if source == simulated.NAME:
        return score(source, *simulated.judge(mode, seed, fault_class))
    return score(source, *modelled.judge(source, mode, seed, fault_class))


if __name__ == "__main__":
    sys.exit(main())
