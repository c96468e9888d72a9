"""The ways there are. A new one is a module that makes a `Way`, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cluster_collect.live.options import LiveOptions, WayName
from cluster_collect.live.session import Session
from cluster_collect.live.ways.mindspore_file import MindSporeWay
from cluster_collect.live.ways.msmonitor import MsMonitorWay
from cluster_collect.live.ways.protocol import Way
from cluster_collect.live.ways.torch_file import FileWay
from cluster_collect.live.ways.vllm_server import VllmWay
from cluster_collect.live.whose import Target

WAYS: Mapping[WayName, Callable[[Session, Target, LiveOptions], Way]] = {
    "file": FileWay,
    "msmonitor": MsMonitorWay,
    "mindspore": MindSporeWay,
    "vllm": VllmWay,
}
