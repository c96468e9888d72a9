"""The fleet as one page that works offline, without scripts: who is next for maintenance, hosts over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cluster_fleet.judging.judge import EFFECTS, kind_of
from cluster_fleet.records import History, Unit
from cluster_fleet.status import Status
from cluster_fleet.store import Fleet
from cluster_fleet.story import Story, day, days, sentence
from cluster_run.said.chinese import Language
from cluster_words.headings import of_fleet
from cluster_words.pages import PAGE_STYLE, templates

_ASSETS = Path(__file__).with_name("assets")
#: The columns of the map, and the number of stories, that are drawn.
_COLUMNS, _DRAWN = 48, 100
_WIDTH, _HEIGHT = 480.0, 72.0


@dataclass(frozen=True)
class Row:
    """One host of the map: `shades` are from 0 (as others) to 1, None where it was in no run."""

    name: str
    shades: Sequence[float | None]


@dataclass(frozen=True)
class DrawnStory:
    """A unit's story: its sentence, and the points of its runs in a picture of `_WIDTH` by `_HEIGHT`."""

    story: Story
    sentence: str
    points: Sequence[tuple[float, float]]
    zero: float
    slow: float


def page(fleet: Fleet, status: Status, language: Language) -> str:
    """Return the page as HTML."""
    units = fleet.units()
    histories = {one: fleet.history(one) for one in {story.metric for story in status.stories}}
    drawn = [_drawn(one, histories[one.metric], units, language) for one in status.stories[:_DRAWN]]
    names = list(dict.fromkeys(one.host for one in status.stories))
    compute = histories.get("compute") or (fleet.history("compute") if fleet.runs() else None)
    rows = _map(compute, units, names) if compute is not None and compute.runs else []
    return (
        templates(_ASSETS)
        .get_template("fleet.html.j2")
        .render(
            status=status,
            drawn=drawn,
            rows=rows,
            n_other_hosts=status.n_hosts - len(names),
            days=days(status.begin_s, status.end_s),
            day=day,
            say=lambda name, **values: of_fleet(name, **values).of(language),
            language=language,
            style=PAGE_STYLE.read_text(encoding="utf-8"),
            width=_WIDTH,
            height=_HEIGHT,
        )
    )


def _map(history: History, units: dict[int, Unit], names: Sequence[str]) -> list[Row]:
    """How slow the slowest device of each host was over time, by the mean of the runs of a column."""
    times = np.array([run.captured_s for run in history.runs])
    span = max(float(times[-1] - times[0]), 1.0)
    column = np.minimum(((times - times[0]) / span * _COLUMNS).astype(int), _COLUMNS - 1)
    hosts = np.array([units[units[one].host].known.name for one in history.units.tolist()])
    shown = np.flatnonzero(np.isin(hosts, names))
    values = history.samples.of(shown)
    largest = 2 * EFFECTS["compute"].slow
    rows = []
    for name in names:
        own = values[:, hosts[shown] == name]
        shades: list[float | None] = []
        for one in range(_COLUMNS):
            inside = own[column == one]
            known = np.isfinite(inside)
            if not known.any():
                shades.append(None)
                continue
            means = np.where(known, inside, 0).sum(0) / np.maximum(known.sum(0), 1)
            shades.append(round(float(np.clip(means.max() / largest, 0, 1)), 2))
        rows.append(Row(name, shades))
    return rows


def _drawn(story: Story, history: History, units: dict[int, Unit], language: Language) -> DrawnStory:
    """The points of a unit; a host's are the middles of its devices."""
    numbers = history.units.tolist()
    own = [at for at, one in enumerate(numbers) if units[one].known.key == story.key]
    own = own or [at for at, one in enumerate(numbers) if units[one].known.host_key == story.key]
    values = history.samples.of(np.array(own))
    seen = np.flatnonzero(np.isfinite(values).any(axis=1))
    series = np.array([np.nanmedian(values[run]) for run in seen]) if len(seen) else np.empty(0)
    slow = EFFECTS[kind_of(story.metric)].slow
    low = min(float(series.min(initial=0.0)), -slow)
    high = max(float(series.max(initial=0.0)), 2 * slow)

    def height(value: float) -> float:
        return round(_HEIGHT * (high - value) / (high - low), 1)

    begin, end = history.runs[0].captured_s, history.runs[-1].captured_s
    span = max(end - begin, 1.0)
    points = [
        (round(_WIDTH * (history.runs[run].captured_s - begin) / span, 1), height(float(value)))
        for run, value in zip(seen.tolist(), series.tolist(), strict=True)
    ]
    return DrawnStory(story, sentence(story, language), points, height(0.0), height(slow))
