"""The timeline of a simulated job: what is in it, and what chrome://tracing's own viewer makes of it.

The viewer is Chromium's (catapult). Debian's Chromium has its page switched off, and Perfetto's
trace_processor wants a download of its own, but a wheel of 1 MB holds the viewer as a file.
"""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from cluster_simulate.cli import main as simulate
from tests.browser.conftest import ACTION_TIMEOUT_MS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

N_RANKS = 32
FAULTS = ("--scenario", "slow_rank:1.25@13", "--scenario", "slow_link:3")

#: The viewer is of a time when browsers had custom elements v0; its model wants no more of them than this.
SHIM = """
  Object.defineProperty(document, "_currentScript", {get: () => document.currentScript});
  window.CustomElements = {hasNative: false, useNative: true};
  const registered = {}, create = document.createElement.bind(document);
  const upgrade = (element, prototype) => {
    Object.setPrototypeOf(element, prototype);
    if (element.createdCallback) element.createdCallback();
    return element;
  };
  document.createElement = (name, ...rest) => {
    const element = create(name, ...rest);
    return registered[name] ? upgrade(element, registered[name]) : element;
  };
  document.registerElement = (name, {prototype}) => {
    registered[name] = prototype;
    for (const element of document.querySelectorAll(name)) upgrade(element, prototype);
    const make = function () { return document.createElement(name); };
    make.prototype = prototype;
    return make;
  };
"""
IMPORT = """text => {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([text]);
  const processes = Object.values(model.processes).map((process) => [process.name,
    Object.values(process.threads).map((thread) => [thread.name,
      thread.sliceGroup.slices.map((slice) => [slice.title, slice.start, slice.duration])])]);
  return {processes, warnings: model.importWarnings.map((one) => one.message)};
}"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    run = tmp_path_factory.mktemp("timeline") / "run1"
    sizes = ("--tp", "4", "--pp", "2", "--dp", "4", "--steps", "5")
    assert simulate([str(run), *sizes, *FAULTS, "-q"]) == 0
    assert analyse([str(run), "--timeline", "-q"]) == 0
    return gzip.decompress((run / "cluster_analysis_output" / "trace.json.gz").read_bytes()).decode()


def test_timeline_of_a_simulated_job_holds_every_rank_on_aligned_clocks(trace):
    document = json.loads(trace)
    slices = [event for event in document["traceEvents"] if event.get("cat") == "communication"]

    assert {event["args"]["rank"] for event in slices} == set(range(N_RANKS))
    assert len(document["otherData"]["clocks"]) == 4
    assert all(clock["error_us"] < 1000 for clock in document["otherData"]["clocks"].values())


def test_the_viewer_of_chromium_reads_every_slice_thread_and_host_of_the_timeline(browser, trace):
    context = browser.new_context()
    context.set_default_timeout(ACTION_TIMEOUT_MS)
    context.add_init_script(f"{{{SHIM}}}")
    page = context.new_page()
    page.goto(viewer_file().as_uri())
    read = page.evaluate(IMPORT, trace)
    context.close()

    assert read["warnings"] == []
    names, threads, slices = expected(trace)
    assert {name for name, _ in read["processes"]} == names
    assert sorted(thread for _, inside in read["processes"] for thread, _ in inside) == sorted(threads)
    shown = sorted(
        (process, thread, start_ms, title, duration_ms)
        for process, inside in read["processes"]
        for thread, of_thread in inside
        for title, start_ms, duration_ms in of_thread
    )
    assert [(*one[:2], one[3]) for one in shown] == [(*one[:2], one[3]) for one in slices]
    for place in (2, 4):
        assert [one[place] for one in shown] == pytest.approx([one[place] for one in slices], abs=1e-3)


def viewer_file() -> Path:
    # Looked for, not imported: the package itself wants half a machine learning framework.
    spec = importlib.util.find_spec("torch_tb_profiler")
    if spec is None or spec.origin is None:
        pytest.skip("Chromium's trace viewer is not here: pip install --no-deps torch-tb-profiler")
    return Path(spec.origin).parent / "static" / "trace_viewer_full.html"


def expected(trace: str):
    """Processes, threads and slices as the file has them; times in ms."""
    events = json.loads(trace)["traceEvents"]
    named = {(event["name"], event["pid"], event["tid"]): event for event in events if event["ph"] == "M"}
    processes = {pid: one["args"]["name"] for (kind, pid, _), one in named.items() if kind == "process_name"}
    threads = {
        (pid, tid): one["args"]["name"] for (kind, pid, tid), one in named.items() if kind == "thread_name"
    }
    slices = sorted(
        (
            processes[event["pid"]],
            threads[event["pid"], event["tid"]],
            event["ts"] / 1000,
            event["name"],
            event["dur"] / 1000,
        )
        for event in events
        if event["ph"] == "X"
    )
    return set(processes.values()), list(threads.values()), slices
