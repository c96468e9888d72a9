"""The analysis as Python objects: `run = analyse("run1")`, then `run.findings` and the tables as DataFrames.

Nothing is written and nothing is printed; `cluster-analyse` does both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from cluster_analysis.judging import compared, judged
from cluster_analysis.kept.loaded import load_result
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports.commands import place_text
from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences import phrases, verdicts
from cluster_analysis.sentences.costs import cost_of
from cluster_analysis.tables.columns_described import Findings
from cluster_analysis.tables.model import RankSource, Selection
from cluster_run.errors import InputError
from cluster_run.findings import FindingsDocument, Verdict
from cluster_run.ids import Rank, Step, format_number_ranges
from cluster_words.checks import next_check, page_of
from cluster_words.findings import summary

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    from cluster_analysis.judge.baseline import Comparison
    from cluster_analysis.reports.plots import Plots
    from cluster_analysis.tables.columns import TableName

_MAX_SHOWN = 8


def analyse(
    path: str | Path,
    *,
    baseline: str | Path | None = None,
    steps: Iterable[int] | None = None,
    ranks: Iterable[int] | None = None,
    capture: str | None = None,
    scheduler: str = "auto",
    workers: int | None = None,
    show_addresses: bool = False,
    fleet: str = "",
) -> Run:
    """Analyse a run directory, or any tree of profiler data; the options are those of `cluster-analyse`.

    Args:
        path: the run directory.
        baseline: an older run of the same job, to compare with (`run.comparison`).
        steps: these steps only.
        ranks: these ranks only.
        capture: this capture, where a rank has several; the newest otherwise.
        scheduler: `auto`, `threads`, `processes`, or the address of a Dask scheduler.
        workers: how many threads or processes.
        show_addresses: real names of hosts.
        fleet: the database of `cluster-fleet` that knows the devices from other runs.

    Raises:
        InputError: there is nothing that could be analysed.
        EngineError: a cluster could not be reached, or was lost.
    """
    run = Path(path)
    if not run.is_dir():
        raise InputError(f"{run}: no such directory")
    options = AnalyseOptions(
        run=run,
        baseline=None if baseline is None else Path(baseline),
        selection=Selection(
            steps=None if steps is None else frozenset(map(Step, steps)),
            ranks=None if ranks is None else frozenset(map(Rank, ranks)),
        ),
        part=capture,
        scheduler=scheduler,
        n_workers=workers,
        write_report=False,
        show_addresses=show_addresses,
        fleet=fleet,
    )
    with examined(options) as one:
        result = judged(one)
        return Run(result, compared(one, result), one.sources, options.selection)


def load(path: str | Path) -> Run:
    """Return what an earlier analysis wrote: findings.json with tables/, or the run that holds them.

    Raises:
        InputError: there is no output, or a damaged one.
    """
    return Run(load_result(Path(path)))


class Run:
    """An analysed run. DataFrames are made when they are first asked for; units are in the column names."""

    def __init__(
        self,
        result: AnalysisResult,
        comparison: Comparison | None = None,
        sources: tuple[RankSource, ...] = (),
        selection: Selection | None = None,
    ) -> None:
        self._result = result
        self._sources, self._selection = sources, selection or Selection()
        self.comparison: Comparison | None = comparison

    @property
    def document(self) -> FindingsDocument:
        """The content of findings.json as frozen values."""
        return self._result.document

    @property
    def verdict(self) -> Verdict:
        """`healthy`, `degraded` or `unknown`."""
        return self.document.verdict

    @property
    def tables(self) -> Mapping[TableName, pa.Table]:
        """The tables of `tables/*.parquet`, as pyarrow tables."""
        return cast("Mapping[TableName, pa.Table]", self._result.tables)

    @property
    def plot(self) -> Plots:
        """The page's pictures as matplotlib figures: `plot.lanes()`, `steps()`, `ranks()`, `waits()`."""
        from cluster_analysis.reports.plots import Plots  # noqa: PLC0415 - few draw

        return Plots(self._result)

    def frame(self, name: TableName) -> pd.DataFrame:
        """Return a table as a DataFrame; its columns are a class of `cluster_analysis.tables.columns`.

        Raises:
            KeyError: there is no table of that name; the message lists them.
        """
        if name not in self.tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(sorted(self.tables))}")
        frame: pd.DataFrame = self.tables[name].to_pandas()
        return frame

    def ddf(self, name: Literal["calls", "matrix"]) -> dd.DataFrame:
        """Return what each rank recorded as a Dask DataFrame, which need not fit into memory.

        Its partitions are batches of ranks, read from the files of the run when they are computed.

        Args:
            name: `calls` (one row a rank and call of a communication operator) or `matrix` (one row a rank,
                operator and link, as in communication_matrix.json).

        Raises:
            KeyError: there is no frame of that name; the message lists them.
            InputError: the run was loaded from what an analysis wrote, which does not keep records.
        """
        from cluster_analysis.engine.frames import RECORDED, recorded_frame  # noqa: PLC0415 - 1 s

        if name not in RECORDED:
            raise KeyError(f"no Dask frame {name!r}; there are {', '.join(RECORDED)}")
        if not self._sources:
            raise InputError(
                "an output keeps no records of ranks", "cluster_analysis.analyse(RUN) reads them"
            )
        return recorded_frame(name, self._sources, self._selection)

    @cached_property
    def findings(self) -> pd.DataFrame:
        """One row a finding, the costliest first, with what findings.json says of it."""
        import pandas as pd  # noqa: PLC0415

        rows = [_row(self._result, position) for position in range(len(self.document.findings))]
        return pd.DataFrame(rows, columns=_FINDING_COLUMNS)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """One row a rank: where it runs, and its place in the job."""
        return self.frame("ranks")

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a rank and step: the parts of its step, in µs."""
        return self.frame("steps")

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row a directed link, transport and kind of operator."""
        return self.frame("links")

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """One row a communication operator and step, matched over the ranks of its group."""
        return self.frame("matched")

    @cached_property
    def operators(self) -> pd.DataFrame:
        """One row a rank and kind of kernel."""
        return self.frame("operators")

    def step(self, number: int) -> pd.DataFrame:
        """Return one step: a row a rank (its index), parts of the step and waiting in µs.

        Raises:
            KeyError: the step was not profiled; the message says which were.
        """
        steps = self.steps[self.steps["step"] == number]
        if steps.empty:
            there = format_number_ranges(self.steps["step"].unique().tolist())
            raise KeyError(f"step {number} is not there; there are {there}")
        waits = self.frame("rank_times")
        waits = waits[waits["step"] == number].drop(columns="step").set_index("rank")
        return steps.drop(columns="step").set_index("rank").join(waits).sort_index()

    def __repr__(self) -> str:
        return f"<Run {self.document.run.name}: {verdicts.verdict_sentence(self.document).en}>"

    def _repr_html_(self) -> str:
        document = self.document
        rows = "".join(
            f"<tr><td>{escape(one.severity)}</td><td>{escape(summary(one).en)}</td>"
            f"<td>{escape('; '.join(place_text(place, self._result) for place in one.places[:4]))}</td>"
            f"<td style='text-align:right'>{escape(cost_of(one).phrase(document.run.step_ms).en)}</td></tr>"
            for one in document.findings[:_MAX_SHOWN]
        )
        head = "<tr><th>severity</th><th>finding</th><th>where</th><th>a step</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else ""
        more = len(document.findings) - _MAX_SHOWN
        return (
            f"<b>{escape(verdicts.verdict_sentence(document).en)}</b>"
            f"<p>{escape(phrases.run_line(document).en)}</p>{table}"
            f"{f'<p>and {more} more in run.findings</p>' if more > 0 else ''}"
        )


#: Columns of `Run.findings`.
_FINDING_COLUMNS = [name for name in vars(Findings) if not name.startswith("_")]


def _row(result: AnalysisResult, position: int) -> dict[str, Any]:
    finding = result.document.findings[position]
    said = {"summary": summary(finding).en, "next_check": next_check(finding).en}
    said["page"] = page_of(finding).en
    plain = {name: getattr(finding, name) for name in _FINDING_COLUMNS if name not in said}
    return {
        **plain,
        **said,
        "links": [(link.src, link.dst, link.transport) for link in finding.links],
        "places": [place_text(place, result) for place in finding.places],
    }
