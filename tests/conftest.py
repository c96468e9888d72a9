"""How the tests share the processors."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_timeout
from hypothesis import HealthCheck, settings

from tests.left_behind import end_with_this_process

#: Tests wait twice as long as they compute, so there are more workers than processors: with three for each a
#: sixth of the time is idle, with four half of that. But memory ends: a worker takes half a gigabyte.
WORKERS_A_PROCESSOR = 4
MOST_WORKERS = 8
#: Tests that mostly wait, for servers, jobs and deadlines; those that take longest first.
WAITING = (
    *("tests/slurm/", "tests/collect/live/", "tests/test_install.py", "tests/fleet/", "tests/act/"),
    *("tests/browser/", "tests/collect/", "tests/hook/"),
)
#: What takes longest of the others.
COMPUTING_LONG = ("tests/benchmarks/", "tests/analysis/engine/", "tests/analysis/sources/", "tests/simulate/")
#: Of all tests, this share has begun when the last of those begins: what ends late is short.
WAITING_SHARE = 0.85
#: These share what is dear to make: a cluster of Slurm; runs that were analysed, and a PostgreSQL; a browser.
#: All tests of Slurm in a row would last longer than the rest beside them: those of users' jobs have another
#: cluster.
OF_USERS = ("jobs", "time_limit", "docs_examples", "more_than_one_end", "one_directory")
TOGETHER = {
    **{f"tests/slurm/test_{name}.py": "tests/slurm/test_jobs.py" for name in OF_USERS},
    "tests/slurm/test_installation.py": "tests/slurm/test_installation.py",
    "tests/slurm/": "tests/slurm/",
    "tests/fleet/": "tests/fleet/",
    "tests/browser/": "tests/browser/",
}
#: Tests of these share nothing, and each waits long.
APART = (
    *(
        "tests/collect/live/test_traps.py",
        "tests/collect/live/test_msmonitor.py",
        "tests/collect/live/test_command.py",
    ),
    "tests/collect/transfer/test_columns_cut.py",
)
# Dask's processes look at themselves 150 times a second: four that wait take a tenth of a processor.
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"
os.environ["DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL"] = "1s"
# NumPy starts a thread for each processor, a sixth of its import. Only cluster-analyse says so by itself.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# No test asserts a time, and hypothesis would by default: on a loaded machine any example may take long.
# Examples write into one directory of their test, one after another. Other examples come with every run;
# `--hypothesis-profile=many` takes 250.
_UNHURRIED = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("few", max_examples=15, **_UNHURRIED)
settings.register_profile("many", max_examples=250, **_UNHURRIED)
settings.load_profile("few")

# A shell has what it starts in the background ignore Ctrl-C, and so would all commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Commands that run in this process may set their own; the next test begins with the usual one."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True, scope="session")
def _no_server_stays_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    end_with_this_process(tmp_path_factory.getbasetemp())


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-rerunfailures ask its controller at once: it sends two small messages before each test."""
    connection = getattr(getattr(config, "failures_db", None), "sock", None)
    if connection is not None:  # else TCP waits 40 ms for more to send with the second one
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give the second try of a test the whole time of one: pytest-timeout forgets a test once that fails."""
    if getattr(item, "execution_count", 1) > 1:
        marker = item.get_closest_marker("timeout")
        time_s = float(marker.args[0] if marker else item.config.getini("timeout"))
        settings = pytest_timeout.Settings(time_s, "signal", False, False)
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def together(test: str) -> str:
    """Return the name of the tests that one worker runs with this one, one after another."""
    for directory, name in TOGETHER.items():
        if test.startswith(directory):
            return name
    return test if test.startswith(APART) else test.partition("::")[0]


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage in what tests make: the collected tests are none, and dear to look through.

    And seldom: models and simulators make jobs of a million objects, and each look goes through all of them.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests: some that wait and some that compute run at any time, so that no processor is idle.

    Of the cases of a test that has `many`, all but the first are slow.
    """
    begun: set[str] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test in begun:
            item.add_marker("slow")
        elif item.get_closest_marker("many"):
            begun.add(test)
    files = dict.fromkeys(together(item.nodeid) for item in items)
    first = (*WAITING, *COMPUTING_LONG, "")
    ordered = sorted(files, key=lambda file: next(n for n, one in enumerate(first) if file.startswith(one)))
    waiting = [file for file in ordered if file.startswith(WAITING)]
    computing = [file for file in ordered if not file.startswith(WAITING)]
    places = {file: WAITING_SHARE * n / len(waiting) for n, file in enumerate(waiting)}
    places |= {file: n / len(computing) for n, file in enumerate(computing)}
    items.sort(key=lambda item: places[together(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers of `-n auto`."""
    n_processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(WORKERS_A_PROCESSOR * n_processors, MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out files in the order of the tests, but `TOGETHER` and `APART` as these say."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  (only where there are workers)

    class InOrder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    config.option.loadscopereorder = False
    return InOrder(config, log)
