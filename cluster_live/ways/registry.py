"""The ways there are. A new one is a module that makes a `Way`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_live.sight import WayName
from cluster_live.ways.mindspore_file import MindSporeWay
from cluster_live.ways.msmonitor import MsMonitorWay
from cluster_live.ways.protocol import MakesWay
from cluster_live.ways.torch_file import FileWay
from cluster_live.ways.vllm_server import VllmWay

WAYS: Mapping[WayName, MakesWay] = {
    "file": FileWay,
    "msmonitor": MsMonitorWay,
    "mindspore": MindSporeWay,
    "vllm": VllmWay,
}
