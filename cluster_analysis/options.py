"""Options of one run of `cluster-analyse`: built in `command`, frozen."""

from __future__ import annotations

import argparse
from pathlib import Path

from msgspec import Struct, field

from cluster_analysis.tables.model import Selection
from cluster_run.errors import UsageError
from cluster_run.findings import FAILING
from cluster_run.layout import ANALYSIS_OUTPUT_NAME

#: Schedulers with a name of their own; anything else must be the address of a Dask scheduler.
LOCAL_SCHEDULERS = ("auto", "threads", "processes")
NAMED_SCHEDULERS = (*LOCAL_SCHEDULERS, "dask", "slurm")
#: The files for Insight are about as large as what they are made of; larger ones only on demand.
MAX_INSIGHT_BYTES = 512_000_000
#: The memory that tables may take by default. Beyond it they are files, which cost no more processor time.
MEMORY_LIMIT_BYTES = 16 * 1024 * 1024
#: Workers on Slurm by default.
N_SLURM_JOBS = 4
ADDRESS_PREFIXES = ("tcp://", "tls://")
#: Forms of the result on stdout, the default first.
FORMATS = ("terminal", "json", "markdown")


def check_scheduler(scheduler: str, *further: str) -> None:
    """Refuse what neither names a scheduler nor is an address; `further` are names of the caller's own.

    Raises:
        UsageError: it is none.
    """
    known = (*NAMED_SCHEDULERS, *further)
    if scheduler not in known and not scheduler.startswith(ADDRESS_PREFIXES):
        said = f"one of {', '.join(known)}, or an address like tcp://host:8786"
        raise UsageError(f"unknown scheduler {scheduler!r}", said)


def add_format(parser: argparse._ActionsContainer) -> None:
    """Add the option that says in which form the result is written to stdout."""
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="of the result on stdout")
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )


class FailOn(Struct, frozen=True):
    """Values of `--fail-on`: when the command ends with 4.

    Attributes:
        severities: a finding of one of these.
        unknown: the verdict is unknown.
        regression_share: a step that is certainly longer than the baseline's by more than this share of it,
            or a new finding that costs more than that; None where no one asks.
    """

    severities: frozenset[str] = frozenset()
    unknown: bool = False
    regression_share: float | None = None


def fail_on(text: str) -> FailOn:
    """Read `--fail-on`: words separated by commas.

    Raises:
        ValueError: a word is none of them; the message lists them.
    """
    severities, unknown, share = frozenset[str](), False, None
    for word in text.split(","):
        name, _, percent = word.partition(":")
        if word in FAILING:
            severities |= FAILING[word]
        elif word == "unknown":
            unknown = True
        elif name == "regression" and _is_percent(percent):
            share = float(percent.rstrip("%") or 0) / 100
        else:
            raise ValueError(f"{word!r}: one of {', '.join(FAILING)}, unknown, regression[:PERCENT]")
    return FailOn(severities, unknown, share)


def _is_percent(text: str) -> bool:
    return not text or text.rstrip("%").replace(".", "", 1).isdecimal()


class TlsFiles(Struct, frozen=True):
    """Certificates for a `tls://` scheduler: paths of PEM files."""

    ca_file: str
    certificate: str
    key: str


class AnalyseOptions(Struct, frozen=True):
    """One analysis. None means "decide for me"."""

    run: Path
    output: Path | None = None
    baseline: Path | None = None
    selection: Selection = field(default_factory=Selection)
    part: str | None = None
    scheduler: str = "auto"
    n_workers: int | None = None
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    scratch: Path | None = None
    tls: TlsFiles | None = None
    write_report: bool = True
    write_timeline: bool = False
    write_insight: bool | None = None
    show_addresses: bool = False
    #: The fleet's database, a file or a URL; empty for none.
    fleet: str = ""
    #: The file that `run` was unpacked from.
    archive: Path | None = None

    @property
    def reported_run(self) -> Path:
        """Name of the run in reports: as its user named it."""
        return self.archive or self.run

    def wants_insight(self, size_bytes: int) -> bool:
        """Return whether files for Insight are written of `size_bytes` of profiler data."""
        return size_bytes <= MAX_INSIGHT_BYTES if self.write_insight is None else self.write_insight

    @property
    def output_folder(self) -> Path:
        """Where findings, tables and reports go."""
        return self.output if self.output is not None else self.run / ANALYSIS_OUTPUT_NAME
