"""The page's pictures as matplotlib figures: `run.plot.lanes()`, in a notebook or `.savefig("lanes.png")`.

matplotlib is an extra: `pip install 'cluster-profiler[plot]'`. Only this module imports it.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster_analysis.result import AnalysisResult
from cluster_run.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

#: The page's colours of what a rank does: ended, its own work, waiting, transfer.
_LANES = ("#ffffff", "#3a6fb0", "#dededa", "#e3a34f")
_LANE_NAMES = ("own work", "waiting", "transfer")
#: The page's parts of a step, by column of the table of steps, and their colours.
_PARTS = {
    "computing_us": ("computing", "#3a6fb0"),
    "communication_not_overlapped_us": ("communication, not overlapped", "#e3a34f"),
    "free_us": ("free", "#c3c8cc"),
}


class Plots:
    """Pictures of a run. Each is a new figure, which a notebook shows by itself."""

    def __init__(self, result: AnalysisResult) -> None:
        self._result = result

    def lanes(self) -> Picture:
        """One step as lanes: what each rank does when, as the replay has it, and the critical path in black.

        Raises:
            InputError: the job was not replayed, or matplotlib is not installed.
        """
        table, path = self._table("lanes"), self._table("critical_path")
        cells = np.stack([np.frombuffer(row, np.uint8) for row in table["cells"].to_pylist()])
        ranks, cell_ms = table["rank"].to_pylist(), table["cell_us"][0].as_py() / 1e3
        picture, axes = _figure(f"step {table['step'][0].as_py()}: {', '.join(_LANE_NAMES)}")
        end_ms = cell_ms * cells.shape[1]
        _coloured(axes, cells, (0.0, end_ms, len(ranks) - 0.5, -0.5))
        place = {rank: row for row, rank in enumerate(ranks)}
        for row in path.to_pylist():
            y = place[row["rank"]]
            axes.plot([row["begin_us"] / 1e3, row["end_us"] / 1e3], [y, y], color="black", linewidth=1.5)
        axes.set(xlabel="ms", ylabel="rank")
        return picture

    def steps(self) -> Picture:
        """The parts of a step, step by step, as the mean over all ranks.

        Raises:
            InputError: no step times were measured, or matplotlib is not installed.
        """
        return self._stacked("step")

    def ranks(self) -> Picture:
        """The parts of a step, rank by rank, as the mean over all steps.

        Raises:
            InputError: no step times were measured, or matplotlib is not installed.
        """
        return self._stacked("rank")

    def waits(self) -> Picture:
        """Who waits for whom in the step of the lanes, in ms. Rows wait for the work of columns.

        Raises:
            InputError: the job was not replayed, or matplotlib is not installed.
        """
        table = self._table("waits")
        ranks = [int(rank) for rank in self._result.topology.ranks]
        place = np.full(max(ranks) + 1, -1)
        place[ranks] = np.arange(len(ranks))
        known = table.filter(table["for_rank"].is_valid())
        waited_ms = np.zeros((len(ranks), len(ranks)))
        ends = [place[known[name].to_numpy()] for name in ("rank", "for_rank")]
        np.add.at(waited_ms, tuple(ends), known["wait_us"].to_numpy() / 1e3)
        picture, axes = _figure("who waits for whom, ms")
        picture.colorbar(axes.imshow(waited_ms, cmap="Oranges", aspect="auto"), ax=axes)
        axes.set(xlabel="waited for (rank)", ylabel="waits (rank)")
        return picture

    def _stacked(self, by: str) -> Picture:
        frame = self._table("steps").to_pandas().groupby(by)[list(_PARTS)].mean() / 1e3
        picture, axes = _figure(f"mean step by {by}")
        below = np.zeros(len(frame))
        for column, (name, colour) in _PARTS.items():
            values = frame[column].fillna(0.0).to_numpy()
            axes.bar(frame.index.to_numpy(), values, bottom=below, color=colour, label=name)
            below = below + values
        axes.set(xlabel=by, ylabel="ms")
        axes.legend(loc="lower right")
        return picture

    def _table(self, name: str) -> Any:
        table = self._result.table(name)
        if not table.num_rows:
            raise InputError(f"{self._result.document.run.name}: nothing to draw, the table {name} is empty")
        return table


class Picture:
    """A figure of matplotlib that a notebook shows, whatever backend it has; all else is the figure's own."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def __getattr__(self, name: str) -> Any:
        return getattr(self.figure, name)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.figure.savefig(content, format="png")
        return content.getvalue()


def _figure(title: str) -> tuple[Picture, Axes]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError("plots need matplotlib: pip install 'cluster-profiler[plot]'") from error
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    return Picture(figure), axes


def _coloured(
    axes: Axes, cells: np.ndarray[Any, Any], extent: tuple[float, float, float, float]
) -> AxesImage:
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 - an extra

    colours, most = ListedColormap(_LANES), len(_LANES) - 1
    return axes.imshow(
        cells, colours, aspect="auto", interpolation="nearest", vmin=0, vmax=most, extent=extent
    )
