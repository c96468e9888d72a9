"""One rank of a small job that really runs: torch on CPUs, gloo between processes, Kineto's trace of it.

    python -m benchmarks.executed.worker PLAN.json RANK FOLDER

Kernels are sleeps, so that eight ranks fit on two cores. What is real is the order of calls, who meets whom,
the threads that carry them beside the work, and what the profiler writes. `data` is DistributedDataParallel
with buckets beside the backward; `pipeline` is two replicas of four stages (1F1B).
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function

_STAGES = 4
_MICROS = 4
_WIDTH = 256


class _Slow(torch.autograd.Function):  # type: ignore[misc]
    """A layer's work: a sleep forwards, and twice as long backwards."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ms: float) -> torch.Tensor:
        ctx.ms = ms
        _work("forward", ms)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        _work("backward", 2 * ctx.ms)
        return grads[0], None


def _work(what: str, ms: float) -> None:
    """Sleep as long as kernels would take. The last half ms is spun, so that it is as long as asked for."""
    until = time.perf_counter() + ms / 1000
    with record_function(f"kernel/{what}"):
        time.sleep(max(0.0, ms / 1000 - 0.0005))
        while time.perf_counter() < until:
            pass


class _Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, ms: float) -> None:
        super().__init__()
        self.linear, self.ms = torch.nn.Linear(_WIDTH, _WIDTH), ms

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Slow.apply(self.linear(x), self.ms)


class _Job:
    """What one rank does in a step. `plan` has the work of a layer in ms, and this rank's delays."""

    def __init__(self, plan: dict[str, Any], rank: int) -> None:
        self.plan, self.rank = plan, rank
        self.delay = plan["delays"].get(str(rank), {})
        self.ms = plan["work_ms"] * (1 + self.delay.get("computes", 0.0))

    def idle(self) -> None:
        """Stand still before a step, as a host that fetches its input late."""
        time.sleep((self.plan["input_ms"] + self.delay.get("feeds_ms", 0.0)) / 1000)


class _Data(_Job):
    """DistributedDataParallel over all ranks."""

    def __init__(self, plan: dict[str, Any], rank: int) -> None:
        super().__init__(plan, rank)
        layers = torch.nn.Sequential(*(_Layer(self.ms) for _ in range(plan["layers"])))
        self.model = DistributedDataParallel(layers, bucket_cap_mb=0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.groups = {"dp": list(range(dist.get_world_size()))}

    def step(self) -> None:
        self.idle()
        loss = self.model(torch.ones(4, _WIDTH)).sum()
        self.optimizer.zero_grad()
        loss.backward()
        _work("update", 0.5 * self.ms)
        self.optimizer.step()


class _Pipeline(_Job):
    """1F1B over four stages, in two replicas that sum up gradients in the end."""

    def __init__(self, plan: dict[str, Any], rank: int) -> None:
        super().__init__(plan, rank)
        n = dist.get_world_size()
        replicas = n // _STAGES
        self.stage, self.replica = rank // replicas, rank % replicas
        self.groups = {}
        for stage in range(_STAGES):
            members = [stage * replicas + one for one in range(replicas)]
            group = dist.new_group(members)
            if stage == self.stage:
                self.data, self.groups["dp"] = group, members
        self.chain = [stage * replicas + self.replica for stage in range(_STAGES)]
        self.groups["pp"] = self.chain
        self.gradients = torch.ones(_WIDTH * _WIDTH)

    def step(self) -> None:
        self.idle()
        ahead = min(_MICROS, _STAGES - self.stage - 1)
        before = self.chain[self.stage - 1] if self.stage else None
        behind = self.chain[self.stage + 1] if self.stage < _STAGES - 1 else None
        for _ in range(ahead):
            self._exchange(None, before)
            self._work("forward")
            self._exchange(behind, None)
        self._exchange(None, before)
        for micro in range(_MICROS):
            if micro + ahead < _MICROS:
                self._work("forward")
                self._exchange(behind, behind)
            else:
                self._exchange(None, behind)
            self._work("backward")
            self._exchange(before, before if micro + ahead + 1 < _MICROS else None)
        dist.all_reduce(self.gradients, group=self.data)
        _work("update", 0.5 * self.ms)

    def _work(self, what: str) -> None:
        _work(what, self.ms * self.plan["layers"] * (2 if what == "backward" else 1))

    def _exchange(self, target: int | None, source: int | None) -> None:
        """Send to one neighbour and receive from one, at once; a stage at the end has none."""
        calls = [dist.P2POp(dist.isend, torch.ones(64, _WIDTH), target)] if target is not None else []
        if source is not None:
            calls.append(dist.P2POp(dist.irecv, torch.ones(64, _WIDTH), source))
        for one in dist.batch_isend_irecv(calls) if calls else ():
            one.wait()


def main() -> None:
    """Run the steps and write the trace, the groups, and how long the steps took."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    rank, folder = int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=plan["ranks"],
        timeout=timedelta(seconds=120),
    )  # fmt: skip
    job = (_Data if plan["kind"] == "data" else _Pipeline)(plan, rank)
    for _ in range(2):
        job.step()
    dist.barrier()
    job.step()
    with profile(activities=[ProfilerActivity.CPU]) as traced:
        dist.barrier()
        for number in range(plan["steps"]):
            with record_function(f"ProfilerStep#{number}"):
                job.step()
    traced.export_chrome_trace(str(folder / f"trace-{rank}.json"))
    (folder / f"groups-{rank}.json").write_text(json.dumps(job.groups))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
