"""Numbers and words that users read are those of the code. How it judges: `test_docs_decisions`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from cluster_act.ways import process
from cluster_analysis.engine import choose, protocol
from cluster_analysis.engine.clusters import reach
from cluster_analysis.options import FORMATS, MAX_INSIGHT_BYTES, MEMORY_LIMIT_BYTES, NAMED_SCHEDULERS
from cluster_analysis.reports.page import sections
from cluster_analysis.thresholds import judging
from cluster_analysis.thresholds.limits import Thresholds
from cluster_collect.live import watch
from cluster_collect.live.options import WayName
from cluster_collect.selection.options import KINDS
from cluster_collect.spec import CollectOptions
from cluster_collect.store import writer
from cluster_collect.transfer import rounds
from cluster_collect.transfer.ways import intake
from cluster_fleet.judging import judge, probes
from cluster_hook import job
from cluster_hook.spool.drain import DrainOptions
from cluster_run.findings import CRITICAL_COST_SHARE, FAILING, WARNING_COST_SHARE
from cluster_tell import formats, outcome, teller
from tests.test_docs_decisions import WORDS, percent
from tools.bundle import PYTHONS

ROOT = Path(__file__).parents[1]
LIMITS, COLLECTING = Thresholds(), CollectOptions()
SMALL, IN_MEMORY = (f"{size >> 20} MiB" for size in (choose.SMALL_RUN_BYTES, MEMORY_LIMIT_BYTES))
ALLOWED_FAILURES = int(reach.SCHEDULER["distributed.scheduler.allowed-failures"])
IN_THE_LAST = ("a week", "week", "一周") if probes.COUNTS_S == 7 * 86400 else 3 * (str(probes.COUNTS_S),)
KEPT = ("a day", "一天") if teller._KEPT_S == 86400 else 2 * (str(teller._KEPT_S),)
#: But for those that tell what was measured.
PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(path for path in ROOT.glob("docs/*.md") if path.stem not in ("accuracy", "how-it-decides")),
    *ROOT.glob("docs/zh/*.md"),
    *ROOT.glob("cluster_run/schemas/*.json"),
    *ROOT.glob("cluster_words/*.json"),
]
EXAMPLES = re.compile(r"^> .*|^```.*?^```|<!-- demo:begin.*?demo:end -->", re.MULTILINE | re.DOTALL)
OF_THE_STEP = re.compile(
    r"([\d.]+) % of (?:the|each) (?:mean )?step|critical`? from ([\d.]+) %"
    r"|(?:每步的|平均步时的|`warning`：|，达到) ([\d.]+) %"
)
OFF = re.compile(
    r"(?:are|is) off by more than ([\d.]+) %|steps by more than ([\d.]+) %"
    r"|replay error of ([\d.]+) %|相差超过 ([\d.]+) %"
)
TOLD = {
    "ARCHITECTURE.md": [
        f"`auto` below {SMALL}, or",
        f"in memory, above {IN_MEMORY} in Arrow files",
        f"in memory, above {IN_MEMORY} (`--memory-limit`)",
        f"`processes`, `auto` from {SMALL}",
        f"tries it {WORDS[protocol.N_ATTEMPTS]} times",
        f"kills {WORDS[protocol.N_ATTEMPTS]} more",
    ],
    "docs/performance.md": [
        f"below {SMALL} starting workers",
        f"this process below {SMALL}, local processes above",
        f"`--memory-limit` ({IN_MEMORY}, ",
    ],
    "docs/report.md": [f"holds {percent(sections.FULL_SHARE)} of it"],
    "cluster_words/words.json": [
        f"above {percent(sections.FULL_SHARE)} of the capacity",
        f"超过容量的 {percent(sections.FULL_SHARE)}",
    ],
    "docs/insight.md": [f"for more than {MAX_INSIGHT_BYTES // 10**6} MB of"],
    "docs/from-file-to-verdict.md": [
        f"fetched again, {'twice' if rounds._N_REFETCHES == 2 else rounds._N_REFETCHES} at most",
        f"or {intake._GROWTH_BYTES >> 20} MiB more",
        f"no host has ended for {COLLECTING.interim_s:g} s",
        f"({COLLECTING.progress_deadline_s:g} s without progress",
        f"attempts of {COLLECTING.give_up_s:g} s together",
        f"beginnings of {writer.LARGE_BYTES >> 20} MiB or more",
        f"One that kills {WORDS[protocol.N_ATTEMPTS]} more",
        f"dies with {WORDS[ALLOWED_FAILURES + 1]} workers",
        f"for {reach.NO_WORKERS_DEADLINE_S:g} s, the command ends",
        f"killed after {process.DEADLINE_S:g} s",
        f"of {WORDS[2 * judging.N_IN_TURN]} alarms at most: the {WORDS[judging.N_IN_TURN]} costliest",
        f"the costliest {WORDS[LIMITS.max_info]} stay",
        f"anybody has {WORDS[LIMITS.min_peers]} peers",
    ],
    "docs/findings.md": [f"the one that adds most, up to {WORDS[judging.N_IN_TURN]} parts"],
    "cluster_run/schemas/findings.schema.json": [
        f"each time what adds most, {WORDS[judging.N_IN_TURN]} at most"
    ],
    "docs/hooks.md": [f"The drain tries {WORDS[DrainOptions.n_attempts]} times", f"try for {KEPT[0]}"],
    "docs/hooks-reference.md": [f"tries it again, for {KEPT[0]}"],
    "docs/zh/hooks.md": [f"保留{KEPT[1]}"],
    "docs/live.md": [f"stays within {percent(watch.MOST_SHARE)} of the time"],
    "docs/fleet.md": [
        f"from {percent(judge.EFFECTS['compute'].middle)} on",
        f"(links from {np.expm1(judge.EFFECTS['link'].middle):.0%}".replace("%", " %"),
    ],
    **{
        page: [f"{PYTHONS[0]} {to} {PYTHONS[-1]}"]
        for page, to in (
            ("README.md", "to"),
            ("README.zh.md", "至"),
            ("Makefile", "to"),
            ("docs/collecting.md", "to"),
        )
    },
    "pyproject.toml": [f"Programming Language :: Python :: {one}" for one in PYTHONS],
    "docs/act.md": [f"For {IN_THE_LAST[0]} a device"],
    "cluster_words/findings.json": [
        f"within the last {IN_THE_LAST[1]} found",
        f"最近{IN_THE_LAST[2]}的探测",
    ],
}
#: Words that a user may write or read, and the pages that say what each means.
NAMED = [
    (job._COMMENT_KEYS, "docs/hooks.md", "docs/zh/hooks.md"),
    (job.VIAS, "docs/hooks.md"),
    (KINDS, "docs/collecting.md", "docs/zh/collecting.md"),
    (teller.TELL_WHEN, "docs/hooks.md", "docs/zh/hooks.md"),
    (formats.FORMATS, "docs/hooks.md", "docs/zh/hooks.md"),
    (get_args(outcome.OutcomeState), "docs/hooks.md", "docs/zh/hooks.md"),
    (NAMED_SCHEDULERS, "docs/performance.md", "ARCHITECTURE.md"),
    (get_args(WayName), "docs/live.md"),
    (FORMATS, "docs/report.md"),
    (tuple(FAILING), "docs/recipes.md"),
]


def shares_in(page: Path, pattern: re.Pattern[str]) -> set[str]:
    """Every share that a page tells by this pattern, but for examples of what a report says."""
    text = EXAMPLES.sub("", page.read_text("utf-8"))
    return {f"{next(filter(None, found.groups()))} %" for found in pattern.finditer(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_shares_of_the_step_and_errors_of_the_replay_are_those_that_decide(page: Path) -> None:
    of_the_step = (WARNING_COST_SHARE, LIMITS.sure_cost_share, CRITICAL_COST_SHARE, LIMITS.exposed_share)
    assert shares_in(page, OF_THE_STEP) <= set(map(percent, of_the_step))
    assert shares_in(page, OFF) <= set(map(percent, (LIMITS.replay_refuse, LIMITS.replay_mean_doubt)))


@pytest.mark.parametrize(("page", "told"), [(page, one) for page, texts in TOLD.items() for one in texts])
def test_a_page_tells_the_number_of_the_code(page: str, told: str) -> None:
    assert told in " ".join((ROOT / page).read_text("utf-8").split())


@pytest.mark.parametrize(("names", "page"), [(names, page) for names, *pages in NAMED for page in pages])
def test_a_page_names_every_word_of_the_code(names: tuple[str, ...], page: str) -> None:
    quoted = " ".join(re.findall(r"`([^`\n]+)`", (ROOT / page).read_text("utf-8")))
    assert set(names) - set(re.findall(r"[\w-]+", quoted)) == set()
