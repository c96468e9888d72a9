"""How well the detection names culprits and costs, on jobs with known faults.

    python -m benchmarks.detection [--model NAME] [--seeds report|develop] [--faults N] [--healthy N]

Prints one table for plain and one for hard jobs of each source: the project's simulator, and the models
that share nothing with it; then what is said of a real trace. Beside this detection stand rules of the field.
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
#: One job: its source, its mode, its seed, and the class of its fault.
Work = tuple[str, str, int, "str | None"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables."""
    options = parser(__doc__).parse_args(arguments)
    work = [one for source in SOURCES if options.model in (source, "all") for one in work_of(source, options)]
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
    options.add_argument("--faults", type=int, default=108, help="faulty jobs of each source and mode")
    options.add_argument("--healthy", type=int, default=60, help="healthy jobs of each source and mode")
    options.add_argument("--skip", type=int, default=0, help="leave out seeds that were looked at before")
    options.add_argument("--class", dest="fault_class", help="only faulty jobs of this class")
    options.add_argument("--mode", choices=("plain", "hard", "both"), default="both")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument(
        "--without-matrix", action="store_true", help="the same jobs, none with a communication_matrix.json"
    )
    return options


def work_of(source: str, options: argparse.Namespace) -> list[Work]:
    """Return the jobs of one source: classes of faults in turn, then healthy jobs, each with its own seed."""
    classes = simulated.FAULTS if source == simulated.NAME else modelled.MODELS[source].FAULT_CLASSES
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
