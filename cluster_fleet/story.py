"""The history of one unit in one metric, and its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from cluster_fleet.judging.judge import State
from cluster_fleet.judging.probes import CLEARED, CONFIRMED
from cluster_run.facts import Fact, fact
from cluster_run.said.chinese import Language
from cluster_words.findings import story as story_phrase
from cluster_words.headings import of_fleet
from cluster_words.phrase import Phrase


@dataclass(frozen=True)
class Story:
    """One unit in one metric. `level` is how much slower it is (a share of the time, or of the step).

    `low` and `high` hold it in 95 %. `since_s` is when the present state began, `n_runs` the runs since then,
    `n_episodes` how often it was slow, `hours_lost` device-hours that findings that name it have cost.
    `n_named` of its runs in the 30 days up to the newest run named it. `counters` of a slow link count
    more than nine in ten do. `is_born_slow`: from its first run on. `probe` is what a probe found that
    still counts.
    """

    key: str
    name: str
    host: str
    metric: str
    state: State
    level: float
    low: float
    high: float
    n_runs: int
    n_all: int
    since_s: float
    last_s: float
    n_episodes: int
    is_born_slow: bool
    by_clock: bool
    hours_lost: float
    n_named: int
    counters: tuple[str, ...]
    probe: str

    @property
    def is_slow(self) -> bool:
        """Whether somebody should act: by a probe, else by its jobs."""
        return self.probe == CONFIRMED or (self._is_slow_in_jobs and self.probe != CLEARED)

    @property
    def is_cleared(self) -> bool:
        """Whether its jobs say that it is slow, and a probe does not."""
        return self._is_slow_in_jobs and self.probe == CLEARED

    @property
    def _is_slow_in_jobs(self) -> bool:
        return self.state in ("slow", "intermittent")


def story_fact(story: Story) -> Fact:
    """Return what is said of a unit, as a run's finding quotes it."""
    return fact(
        f"fleet_{story.state}",
        unit=story.name, metric=story.metric, level=story.level, low=story.low, high=story.high,
        n_runs=story.n_all if story.state == "intermittent" else story.n_runs, since=day(story.since_s),
        is_born=story.is_born_slow, n_episodes=max(story.n_episodes, 1), by_clock=story.by_clock,
        n_named=story.n_named, counters=story.counters,
        is_confirmed=story.probe == CONFIRMED, is_cleared=story.probe == CLEARED,
    )  # fmt: skip


def sentence(story: Story, language: Language) -> str:
    """Return what is said of a unit in a language."""
    return story_phrase(story_fact(story)).of(language)


def days(begin_s: float, end_s: float) -> Phrase:
    """Return the days from a time to another one."""
    begin, end = day(begin_s), day(end_s)
    return Phrase(begin, begin) if begin == end else of_fleet("days", begin=begin, end=end)


def day(seconds: float) -> str:
    """Return the date of a time, UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
