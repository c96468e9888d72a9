"""Jobs of the models in `benchmarks.models`: written as profilers do, and judged by reading their files."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from benchmarks.detection.field_rules import RULES
from benchmarks.detection.no_matrix import has_matrix, mode_of_model, remove_matrix
from benchmarks.detection.scoring import Said
from benchmarks.models.flows import model as flows
from benchmarks.models.paths import model as paths
from benchmarks.models.queues import model as queues
from benchmarks.models.streams import model as streams
from benchmarks.models.truth import KnownJob
from cluster_analysis import judging, pipeline
from cluster_analysis.options import AnalyseOptions

#: Rules that need nothing but step times: the calls are laid out, and let go, before judging.
_RULES = ("5 % spread",)
MODELS: dict[str, ModuleType] = {one.NAME: one for one in (streams, paths, queues, flows)}


def judge(
    source: str, mode: str, seed: int, fault_class: str | None, **shorter: int
) -> tuple[KnownJob, Said]:
    """Write one job of a model, judge it, and return what is true and what was said."""
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        known = made(source, mode, seed, fault_class, Path(folder), **shorter)
        return known, said_of(Path(folder))


def made(
    source: str, mode: str, seed: int, fault_class: str | None, folder: Path, **shorter: int
) -> KnownJob:
    """Write one job of a model into a folder, of `n_steps` if asked, and return what is true of it."""
    known: KnownJob = MODELS[source].make(mode_of_model(mode), seed, fault_class, folder, **shorter)
    if not has_matrix(mode):
        remove_matrix(folder)
    return replace(known, mode=mode)


def said_of(run: Path) -> Said:
    """Judge a run directory as the command does, in this process."""
    options = AnalyseOptions(run=run, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as examined:
        document = judging.judged(examined).document
        rules = {name: RULES[name](examined.evidence, examined.topology) for name in _RULES}
    return Said(document.verdict, document.findings, document.replay.get("error_share"), rules)
