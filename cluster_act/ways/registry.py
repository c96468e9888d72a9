"""The ways there are, by the values of `--way`. A new one is a module that makes a `Way`, and a line here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from cluster_act.values import Way
from cluster_act.ways.command import Command
from cluster_act.ways.kubernetes import Condition, Taint
from cluster_act.ways.mindcluster import MindCluster
from cluster_act.ways.slurm import Slurm

WAYS: Mapping[str, Callable[[argparse.Namespace], Way]] = {
    "slurm": lambda given: Slurm(given.drain_busy),
    "mindcluster": lambda given: MindCluster(given.sender, given.customization, given.namespace),
    "kubernetes": lambda _given: Condition(),
    "kubernetes-taint": lambda _given: Taint(),
    "command": lambda given: Command(given.command),
}
