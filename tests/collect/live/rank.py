"""One rank of a job that runs: the real dynamic profiler of torch_npu in a loop of steps; no NPU, no torch.

Real: polling the file or the daemon, the shared memory, the configuration, counting steps, the optimizer's
hook, the logs. Stand-ins: what is imported of torch, of torch_npu's C layer, and `profile`, which leaves what
`analyse` of `standins` makes files of. Arguments: the package torch_npu, the job's directory, a step in
seconds.
"""

from __future__ import annotations

import ctypes
import enum
import json
import math
import os
import random
import socket
import sys
import time
import types
from pathlib import Path

_PR_SET_NAME = 15
#: How far a host may lag behind the schedule, in steps; the lag drifts.
_LAG_STEPS = 2.0


def module(name: str, path: str | None = None, **names: object) -> types.ModuleType:
    """Make a module; with a path, one whose submodules are read there."""
    made = types.ModuleType(name)
    if path is not None:
        made.__path__ = [path]
    made.__dict__.update(names)
    sys.modules[name] = made
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, made)
    return made


def set_name(name: str) -> None:
    """Name this process, as torch does."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


class Activity(enum.Enum):
    CPU = 0
    NPU = 1


class Profile:
    """What the dynamic profiler uses of `torch_npu.profiler.profile`."""

    def __init__(self, **settings: object) -> None:
        self._settings = settings
        self._first = 0
        self._n = 0
        self._metadata: dict[str, str] = {}

    def _set_step_num_offset_for_dynamic_prof(self, step: int) -> None:
        self._first = step

    def start(self) -> None:
        self._n = 0

    def step(self) -> None:
        self._n += 1

    def add_metadata_json(self, key: str, value: str) -> None:
        self._metadata[key] = value

    def stop(self) -> None:
        directory, options = self._settings["on_trace_ready"]  # type: ignore[misc]
        warmup, active = self._settings["schedule"]  # type: ignore[misc]
        stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() // 1_000_000 % 1000:03d}"
        rank = os.environ["RANK"]
        capture = Path(directory) / f"{socket.gethostname()}_{os.getpid()}_{stamp}_ascend_pt"
        (capture / "PROF_000001_1_A").mkdir(parents=True)
        (capture / f"profiler_info_{rank}.json").write_text("{}")
        (capture / "profiler_metadata.json").write_text(json.dumps(self._metadata))
        first = self._first + warmup
        recorded = {"rank": int(rank), "steps": list(range(first, self._first + self._n)), "active": active}
        (capture / "PROF_000001_1_A" / "recorded.json").write_text(json.dumps(recorded))
        if options.get("analyse_flag"):
            from torch_npu.profiler.analysed import analyse  # noqa: PLC0415

            analyse(str(capture))


def install(package: str) -> type:
    """Make the real profiler importable; return the optimizer whose steps it counts."""
    hooks = []

    class Optimizer:
        def step(self) -> None:
            for hook in hooks:
                hook(self, (), {})

    module("torch", "", __version__="2.14.0")
    module("torch.multiprocessing", _set_thread_name=set_name)
    module("torch.distributed", is_available=lambda: False, is_initialized=lambda: False)
    module("torch.optim", "")
    module("torch.optim.optimizer", Optimizer=Optimizer, register_optimizer_step_post_hook=hooks.append)
    module("torch_npu", package)
    module("torch_npu.utils", f"{package}/utils")
    module("torch_npu._C", "")
    module("torch_npu._C._profiler", ProfilerActivity=Activity, _ExperimentalConfig=dict)
    module("torch_npu._init", f"{package}/_init")
    module("torch_npu._init.common", f"{package}/_init/common")
    marks = types.SimpleNamespace(range_start=lambda *_: 1, range_end=lambda *_: None)
    module("torch_npu.npu", mstx=marks, current_stream=lambda: None)
    module("torch_npu.profiler", f"{package}/profiler")
    ours = Path(__file__).parent / "standins" / "torch_npu" / "profiler"
    sys.modules["torch_npu.profiler"].__path__.append(str(ours))
    module("torch_npu.profiler.profiler", profile=Profile, tensorboard_trace_handler=lambda to, **k: (to, k))
    module("torch_npu.profiler.scheduler", Schedule=lambda *, warmup, active, **_: (warmup, active))
    return Optimizer


class Schedule:
    """When each step of a job ends: the same for all its hosts, but for a lag of each that drifts.

    Steps are not all equally long, and become longer and shorter over minutes.
    """

    def __init__(self, begin_s: float, step_s: float, host: int, first: int) -> None:
        self._at_s = begin_s
        self._step_s = step_s
        self._host = host
        self._steps = random.Random(0)
        self.step = first

    def wait(self) -> None:
        """Wait for the end of the next step."""
        self.step += 1
        pace = 1.0 + 0.15 * math.sin(self.step / 97.0) + 0.05 * self._steps.random()
        self._at_s += self._step_s * pace
        lag = _LAG_STEPS * (0.5 + 0.5 * math.sin(self.step / 61.0 + 1.7 * self._host))
        # Who fell behind catches up, but not all at once: no job does.
        time.sleep(max(self._step_s / 3, self._at_s + lag * self._step_s - time.time()))


def main() -> None:
    package, directory, step_s = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    optimizer = install(package)()
    from torch_npu.profiler import dynamic_profile  # noqa: PLC0415
    from torch_npu.profiler._non_intrusive_profile import _NonIntrusiveProfile  # noqa: PLC0415

    _NonIntrusiveProfile.init()
    monitor = dynamic_profile._DynamicProfile()._dynamic_monitor
    later = json.loads(os.environ.get("BEGAN_LATER_S", "{}"))
    # As if this rank's clock had been ahead when it began, and was set right since.
    monitor._cur_time += later.get(os.environ["RANK"], 0)
    first = int(os.environ.get("FIRST_STEP", "0"))
    if first:
        dynamic_profile.set_state({"cur_step": first})
    (directory / f"rank{os.environ['RANK']}.started").touch()
    while not (directory / "begin").exists():
        time.sleep(0.02)
    begin_s = float((directory / "begin").read_text() or 0) or time.time()
    schedule = Schedule(begin_s, step_s, int(os.environ.get("HOST_NUMBER", "0")), first)
    while not (directory / "end").exists():
        schedule.wait()
        optimizer.step()


if __name__ == "__main__":
    main()
