"""Judge the same jobs again and again without writing and reading them: for those who change the rules.

    python -m benchmarks.detection.stored STORE RESULTS.txt [--seeds develop] [--faults N] [--healthy N] …

What was read of each job (its evidence) is kept in STORE; only what comes behind it is done anew, judging and
costs. RESULTS.txt has each job with its verdict and findings: take it before and after a change, and `diff`.
A store is of no use once what reads or matches has changed. The options are those of `benchmarks.detection`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.detection import modelled, simulated
from benchmarks.detection.__main__ import Work, chosen, parser, print_tables
from benchmarks.detection.scoring import Outcome, Said, score
from benchmarks.models.truth import KnownJob
from cluster_analysis import pipeline
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_run.findings import Finding


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the jobs, from the store where they are in it, and write what was said of each."""
    options_of = parser(__doc__)
    options_of.add_argument("store", type=Path)
    options_of.add_argument("results", type=Path)
    options: argparse.Namespace = options_of.parse_args(arguments)
    work = chosen(options, options_of)
    options.store.mkdir(parents=True, exist_ok=True)
    with multiprocessing.Pool(options.processes, maxtasksperchild=40) as pool:
        judged = list(pool.imap(partial(judge_stored, options.store), work))
    options.results.write_text("".join(f"{text}\n" for _, text in judged), encoding="utf-8")
    outcomes = [outcome for outcome, _ in judged]
    for outcome in outcomes:
        if outcome.line:
            print(outcome.line)
    print_tables(work, outcomes)
    return 0


def judge_stored(store: Path, work: Work) -> tuple[Outcome, str]:
    """Judge one job, which is made and kept where the store has none, and return what was said of it."""
    source, mode, seed, fault_class = work
    path = store / f"{source}-{mode}-{seed}-{fault_class or 'healthy'}.pickle".replace("/", "_")
    if not path.exists():
        path.write_bytes(pickle.dumps(_read(work)))
    job, evidence, topology = pickle.loads(path.read_bytes())
    job = replace(job, saving_ms=partial(_saving_ms, work))
    found = detect(evidence, topology)
    said = Said(found.verdict, found.findings, found.replay.get("error_share"), {})
    outcome = score(source, job, said)
    return outcome, f"{source} {mode} {seed} {job.fault_class}: {_told(job, found)}"


def _read(work: Work) -> tuple[KnownJob, JobEvidence, Topology]:
    source, mode, seed, fault_class = work
    if source == simulated.NAME:
        known, evidence, topology = simulated.read(mode, seed, fault_class)
    else:
        with tempfile.TemporaryDirectory(prefix="model-") as folder:
            known = modelled.made(source, mode, seed, fault_class, Path(folder))
            options = AnalyseOptions(run=Path(folder), scheduler="threads", n_workers=1, write_report=False)
            with pipeline.examined(options) as examined:
                evidence, topology = examined.evidence, examined.topology
    return replace(known, saving_ms=_nothing), evidence, topology


def _nothing(finding: Finding) -> float:
    """Stand for what a finding truly saves, which needs the whole model, in the store."""
    return 0.0


def _saving_ms(work: Work, finding: Finding) -> float:
    """What a finding truly saves: its job is made again to ask that, which few findings need."""
    source, mode, seed, fault_class = work
    if source == simulated.NAME:
        return simulated.read(mode, seed, fault_class)[0].saving_ms(finding)
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        return modelled.made(source, mode, seed, fault_class, Path(folder)).saving_ms(finding)


def _told(job: KnownJob, found: Detection) -> str:
    true = [f"{one.kind} {one.ranks or one.hosts} {one.cost_ms / job.step_ms:.1%}" for one in job.faults]
    rows = [
        f"{one.id} {one.cause} {one.pattern} {one.severity} {one.confidence} "
        f"{'-' if one.cost_share is None else f'{one.cost_share:.2%}'}"
        for one in found.findings
    ]
    return "\n    ".join([f"true {true}; {found.verdict}", *rows, *(one.kind for one in found.notes)])


if __name__ == "__main__":
    sys.exit(main())
