"""The commands of docs/fleet.md and docs/act.md, as a stranger types them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cluster_act.options import make_parser as act_parser
from cluster_act.ways.registry import WAYS
from cluster_analysis.cli import main as analyse
from cluster_fleet.cli import main as fleet
from cluster_fleet.judging.evidence import courses
from cluster_fleet.judging.judge import EFFECTS
from cluster_run.errors import ExitCode
from cluster_simulate.options import build_parser as simulate_parser
from tests.fleet.simulated import samples_of

DOCS = Path(__file__).parents[2] / "docs"
MAINS = {"cluster-analyse": analyse, "cluster-fleet": fleet}


def commands(page: str) -> Iterator[list[str]]:
    """Give the lines of the page's blocks for the shell that call a program of ours."""
    for block in re.findall(r"```bash\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        lines = (shlex.split(line, comments=True) for line in block.splitlines())
        yield from (words for words in lines if words and words[0].startswith("cluster-"))


def test_the_table_of_the_page_has_each_way_to_act() -> None:
    text = (DOCS / "act.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w[\w-]*)` \|", text, re.MULTILINE) == list(WAYS)


@pytest.mark.slow
def test_what_the_page_of_the_fleet_says_can_be_typed_in_a_new_directory(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTER_FLEET", "fleet.db")
    shutil.copytree(runs[0], "run1")
    for run in runs[1:]:
        assert fleet(["add", str(run), "-q"]) == ExitCode.DONE
    fleet(["status"])
    name = re.search(r"device (\d+) of (\S+)(?=:)", capsys.readouterr().out)
    assert name is not None
    # What is the site's own: a device that it has, and where its metrics are fetched.
    own = {"node017:5": f"{name[2]}:{name[1]}", "/var/lib/node_exporter/fleet.prom": "fleet.prom"}
    typed = [[own.get(word, word) for word in words] for words in commands("fleet.md")]
    assert len(typed) >= 5
    for words in typed:
        code = MAINS[words[0]](words[1:])
        assert code in (ExitCode.DONE, ExitCode.FINDINGS), (words, capsys.readouterr().err)
    assert Path("fleet.html").exists()
    assert Path("fleet.prom").exists()
    assert name[0] in capsys.readouterr().out


def test_all_that_the_page_of_acting_says_is_understood_and_names_every_way() -> None:
    typed = list(commands("act.md"))
    assert len(typed) >= 5
    for words in typed:
        act_parser().parse_args(words[1:])
    text = (DOCS / "act.md").read_text(encoding="utf-8")
    options = {word for action in act_parser()._actions for word in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)", text)) - {"--exclude"} <= options


def test_the_runs_that_a_stranger_makes_are_those_of_a_slow_device() -> None:
    loop = re.search(r"`for n in .*?cluster-simulate (.*?); done`", (DOCS / "fleet.md").read_text("utf-8"))
    assert loop is not None
    given = simulate_parser("cluster-simulate").parse_args(shlex.split(loop[1].replace("$n", "1")))
    assert (str(given.out), given.scenario, given.run) == ("run1", ["slow_rank:1.08@5"], 1)


def is_named_after(n_runs: int, n_devices: int) -> bool:
    """Whether one device of so many, far slower than all others in each run, is then named."""
    values = np.zeros((n_runs, n_devices))
    values[:, 0] = 1.0
    course = courses(samples_of(values), np.full(values.size, 1e-6), EFFECTS["compute"], 0)
    return bool(course.onset[0] >= 0)


def test_the_page_says_how_many_runs_it_takes_to_name_a_device() -> None:
    text = (DOCS / "fleet.md").read_text(encoding="utf-8")
    found = re.search(r"three runs at least up to (\d+) devices, four up to (\d+), five up to (\d+)", text)
    assert found is not None
    for n_runs, n_devices in zip((3, 4, 5), map(int, found.groups()), strict=True):
        assert is_named_after(n_runs, n_devices)
        assert not is_named_after(n_runs, n_devices + n_devices // 25)
