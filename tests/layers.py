"""The declared layers of the project, and the imports as they are: read from the source, nothing is run."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from operator import eq
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "cluster_run",
    "cluster_words",
    "cluster_reduce",
    "cluster_fleet",
    "cluster_analysis",
    "cluster_tell",
    "cluster_collect",
    "cluster_hook",
    "cluster_act",
    "cluster_simulate",
    "demo",
    "benchmarks",
)

_COLLECTOR = (
    "cluster_collect.argument_types cluster_collect.entries "
    "cluster_collect.faults cluster_collect.progress_events "
    "cluster_collect.spec cluster_collect.threads cluster_collect.watchdog cluster_collect.wording"
)
_CONNECTIONS = (
    "cluster_collect.transports.become cluster_collect.transports.bounds cluster_collect.transports.protocol"
)
_HOOK = "cluster_hook.job cluster_hook.processes cluster_hook.isolation"
_STEP = (
    "cluster_analysis.trace cluster_analysis.thresholds cluster_analysis.numeric cluster_analysis.tables "
    "cluster_run"
)
_JUDGED = (
    "cluster_analysis.replay cluster_analysis.thresholds cluster_analysis.numeric "
    "cluster_analysis.tables cluster_run"
)
_SOURCES = "cluster_analysis.sources"
_NAMES_OF_SHARED = "communication_tables errors kernel_groups link_names measured names numbers reading"
_SHARED_BY_FORMATS = " ".join(f"{_SOURCES}.{name}" for name in _NAMES_OF_SHARED.split())
_SHARED = (
    f"{_SHARED_BY_FORMATS} cluster_analysis.numeric.arrays cluster_analysis.tables cluster_reduce.levels "
    "cluster_run"
)
#: Small text files that several forms have.
_TEXT_BESIDE = f"{_SOURCES}.counters"
_FORMATS = f"{_SOURCES}.text {_TEXT_BESIDE} {_SOURCES}.columns {_SOURCES}.compiled"
_ALL_FORMATS = f"{_SOURCES}.db {_SOURCES}.r1 {_SOURCES}.iterations"
_ONE_RANK = f"{_SOURCES}.places {_SOURCES}.missing {_SOURCES}.rank_figures {_SOURCES}.rank {_SOURCES}.windows"
#: Each room (a package, or one file of the analysis that wires) and the rooms it may import. A room is the
#: longest matching prefix, and what is allowed is allowed with all that lies below it. A package may import
#: itself. In the order of the data's way.
ALLOWED: Mapping[str, frozenset[str]] = {
    name: frozenset(allowed.split())
    for name, allowed in {
        "cluster_run": "",
        # The Chinese of what was said in English: of texts alone.
        "cluster_run.said": "",
        # Sentences of facts, in every language; what judges knows facts only.
        "cluster_words": "cluster_run",
        # Runs on hosts, where nothing else of ours is.
        "cluster_reduce": "",
        "cluster_reduce.packing": "",
        "cluster_reduce.form": "cluster_reduce.packing",
        # Files of which sums are enough.
        "cluster_reduce.sums": "cluster_reduce.form",
        # Values and small helpers of all its packages: they import nothing of these.
        **dict.fromkeys(_COLLECTOR.split(), f"{_COLLECTOR} cluster_run"),
        "cluster_collect.transports": f"{_COLLECTOR} cluster_run",
        "cluster_collect.transports.ssh": f"{_CONNECTIONS} {_COLLECTOR} cluster_run",
        "cluster_collect.transports.ssh.by_asyncssh": (
            f"cluster_collect.transports.ssh {_CONNECTIONS} {_COLLECTOR} cluster_run"
        ),
        "cluster_collect.transports.ssh.by_paramiko": (
            # asyncssh reads the client's configuration for both.
            "cluster_collect.transports.ssh.by_asyncssh.configuration "
            f"cluster_collect.transports.ssh {_CONNECTIONS} {_COLLECTOR} cluster_run"
        ),
        "cluster_collect.inventory": f"{_COLLECTOR} cluster_run",
        "cluster_collect.selection": f"{_COLLECTOR} cluster_run",
        "cluster_collect.remote": f"cluster_collect.transports.protocol {_COLLECTOR} cluster_run",
        "cluster_collect.store": f"{_COLLECTOR} cluster_run",
        "cluster_collect.transfer": (
            "cluster_collect.transports cluster_collect.selection cluster_collect.remote "
            f"cluster_collect.store {_COLLECTOR} cluster_reduce.form cluster_run"
        ),
        "cluster_collect.transfer.ways": (
            "cluster_collect.transports.protocol cluster_collect.selection cluster_collect.remote "
            f"cluster_collect.store {_COLLECTOR} cluster_reduce.form cluster_run"
        ),
        "cluster_collect.show": (
            f"cluster_collect.transfer.plan cluster_collect.inventory.nodesets {_COLLECTOR} cluster_run"
        ),
        # Runs on hosts, where nothing else of ours is.
        "cluster_collect.live.host": "",
        "cluster_collect.live.options": "cluster_collect.argument_types cluster_tell.formats cluster_run",
        "cluster_collect.live.ways": (
            "cluster_collect.live.common_start cluster_collect.live.host cluster_collect.live.options "
            "cluster_collect.live.session cluster_collect.live.sight cluster_collect.live.whose "
            f"{_COLLECTOR} cluster_run"
        ),
        "cluster_collect.live": (
            "cluster_collect.live cluster_collect.transfer cluster_collect.transports cluster_collect.remote "
            "cluster_collect.selection.suspects cluster_collect.inventory.nodesets cluster_collect.runner "
            "cluster_collect.show.progress "
            f"{_COLLECTOR} cluster_run"
        ),
        # Collectives of hosts are laid beside each other as the analysis does it.
        "cluster_collect.live.collectives": (
            "cluster_collect.live.outcome cluster_analysis.discovery cluster_analysis.engine "
            "cluster_analysis.reports.timeline.clocks cluster_analysis.tables cluster_run"
        ),
        # What is said while a job runs is what the hooks say after it.
        "cluster_collect.live.watch": (
            "cluster_collect.live.collected cluster_collect.live.options cluster_collect.live.outcome "
            "cluster_collect.runner cluster_collect.show.progress "
            f"cluster_tell cluster_analysis.findings_json {_COLLECTOR} cluster_run"
        ),
        "cluster_collect": "cluster_collect cluster_run",
        "cluster_analysis.numeric": "",
        "cluster_analysis.thresholds": "cluster_run",
        "cluster_analysis.tables": "cluster_analysis.numeric cluster_reduce.form cluster_run",
        # What all formats share, then one room a form of files, the ranks' reader last.
        "cluster_analysis.sources": _SHARED,
        **dict.fromkeys(_SHARED_BY_FORMATS.split(), _SHARED),
        "cluster_analysis.sources.compiled": _SHARED,
        # What hosts made of files, as tables again: of the reader that runs there it knows the form alone.
        "cluster_analysis.sources.columns": (
            "cluster_analysis.sources.compiled cluster_reduce.form cluster_reduce.packing "
            f"cluster_reduce.json_walk {_SHARED}"
        ),
        "cluster_analysis.sources.text": (
            "cluster_analysis.sources.columns cluster_analysis.sources.compiled "
            "cluster_reduce.communication cluster_reduce.matrix "
            f"cluster_reduce.sums {_SHARED}"
        ),
        _TEXT_BESIDE: f"cluster_analysis.sources.text {_SHARED}",
        "cluster_analysis.sources.db": f"{_FORMATS} cluster_reduce.sums {_SHARED}",
        "cluster_analysis.sources.r1": f"{_FORMATS} {_SHARED}",
        "cluster_analysis.sources.iterations": (
            f"cluster_reduce.sums cluster_analysis.sources.r1 {_FORMATS} {_SHARED}"
        ),
        **dict.fromkeys(_ONE_RANK.split(), f"{_ONE_RANK} {_ALL_FORMATS} {_FORMATS} {_SHARED}"),
        "cluster_analysis.discovery": (
            "cluster_words cluster_analysis.sources cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.trace": (
            "cluster_analysis.thresholds cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.trace.pairing": f"{_STEP}",
        "cluster_analysis.trace.streams": f"{_STEP}",
        "cluster_analysis.trace.missing": f"{_STEP}",
        "cluster_analysis.topology": ("cluster_analysis.numeric cluster_analysis.tables cluster_run"),
        "cluster_analysis.windows": f"{_STEP}",
        "cluster_analysis.replay": (
            "cluster_analysis.trace cluster_analysis.thresholds cluster_analysis.numeric "
            "cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.options": "cluster_analysis.tables cluster_run",
        "cluster_analysis.engine": (
            "cluster_analysis.options cluster_analysis.topology cluster_analysis.trace "
            "cluster_analysis.windows cluster_analysis.sources cluster_analysis.numeric "
            "cluster_analysis.tables cluster_words cluster_run"
        ),
        # They know nothing of what is worked out: `engine` names them, and they only its protocol.
        "cluster_analysis.engine.clusters": (
            "cluster_analysis.engine.protocol cluster_analysis.engine.graph cluster_analysis.options "
            "cluster_run"
        ),
        "cluster_analysis.judge": f"{_JUDGED}",
        "cluster_analysis.judge.measures": f"cluster_analysis.judge {_JUDGED}",
        "cluster_analysis.judge.cost": f"cluster_analysis.judge {_JUDGED}",
        "cluster_analysis.judge.detectors": (
            "cluster_analysis.judge.measures cluster_analysis.judge.case cluster_analysis.judge.view "
            f"cluster_analysis.judge.suspects {_JUDGED}"
        ),
        "cluster_analysis.result": "cluster_analysis.judge.baseline cluster_analysis.tables cluster_run",
        "cluster_analysis.sentences": (
            "cluster_words cluster_analysis.result cluster_analysis.judge.baseline cluster_run"
        ),
        "cluster_analysis.describe": (
            "cluster_words cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.run_header": "cluster_analysis.options cluster_analysis.tables cluster_run",
        "cluster_analysis.pipeline": (
            "cluster_analysis.discovery cluster_analysis.engine cluster_analysis.options "
            "cluster_analysis.replay cluster_words cluster_analysis.tables "
            "cluster_analysis.topology cluster_analysis.trace.evidence cluster_analysis.windows cluster_run"
        ),
        # Our own output, read again.
        "cluster_analysis.kept": (
            "cluster_analysis.findings_json cluster_analysis.replay.job_evidence cluster_analysis.result "
            "cluster_words cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.judging": (
            "cluster_analysis.kept cluster_analysis.pipeline cluster_analysis.describe "
            "cluster_analysis.engine "
            "cluster_analysis.result cluster_analysis.run_header cluster_analysis.topology cluster_words "
            f"cluster_analysis.judge {_JUDGED}"
        ),
        "cluster_analysis.findings_json": ("cluster_analysis.result cluster_words cluster_run"),
        "cluster_analysis.reports.page": (
            "cluster_analysis.result cluster_words "
            "cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.reports.timeline": (
            "cluster_analysis.reports.commands cluster_analysis.result "
            "cluster_analysis.numeric cluster_analysis.tables cluster_analysis.sentences "
            "cluster_words cluster_run"
        ),
        "cluster_analysis.reports": (
            "cluster_analysis.findings_json cluster_analysis.result cluster_analysis.judge.baseline "
            "cluster_analysis.numeric cluster_analysis.tables "
            "cluster_analysis.sentences cluster_words cluster_run"
        ),
        "cluster_analysis.output_folder": "cluster_run",
        # What is written for MindStudio Insight is made of the ranks' files: nothing is judged by it.
        "cluster_analysis.insight": (
            "cluster_analysis.output_folder cluster_analysis.pipeline cluster_analysis.engine "
            "cluster_analysis.topology cluster_analysis.sources cluster_analysis.numeric "
            "cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.outputs": (
            "cluster_analysis.insight cluster_analysis.reports cluster_analysis.sentences "
            "cluster_analysis.findings_json "
            "cluster_analysis.output_folder "
            "cluster_analysis.pipeline cluster_analysis.judging cluster_analysis.result "
            "cluster_analysis.engine "
            "cluster_analysis.judge.baseline "
            "cluster_analysis.options cluster_analysis.run_header cluster_run"
        ),
        "cluster_analysis": "cluster_analysis cluster_words cluster_run",
        # What other runs know is asked of the fleet in one place.
        "cluster_analysis.kept.fleet": (
            "cluster_analysis.options cluster_fleet.prior cluster_fleet.story cluster_run"
        ),
        "cluster_simulate": "cluster_run",
        "cluster_simulate.job": "cluster_run",
        "cluster_simulate.files": "cluster_simulate.job cluster_run",
        # What is told of an analysis, and to whom: after a job, and while it runs.
        "cluster_tell": (
            "cluster_analysis.findings_json cluster_analysis.reports "
            "cluster_analysis.result "
            "cluster_analysis.sentences cluster_words cluster_analysis.tables cluster_run"
        ),
        # Of both commands the hook knows a few values: it runs them as processes.
        **dict.fromkeys(_HOOK.split(), f"{_HOOK} cluster_run"),
        "cluster_hook.follow": (
            "cluster_tell cluster_analysis.discovery cluster_analysis.engine.clusters "
            "cluster_analysis.findings_json "
            f"cluster_collect.inventory.keys cluster_collect.inventory.located {_HOOK} cluster_run"
        ),
        "cluster_hook.slurm": f"cluster_hook.follow cluster_tell {_HOOK} cluster_run",
        "cluster_hook.spool": (f"cluster_hook.slurm cluster_hook.follow cluster_tell {_HOOK} cluster_run"),
        "cluster_hook.kubernetes": f"cluster_hook.follow cluster_tell {_HOOK} cluster_run",
        "cluster_hook.options": ("cluster_hook.checks cluster_hook.follow cluster_tell cluster_run"),
        "cluster_hook.checks": (
            f"cluster_hook.follow cluster_analysis.options cluster_collect.arguments {_HOOK} cluster_run"
        ),
        "cluster_hook.subcommands": (
            "cluster_hook.options cluster_hook.checks cluster_hook.kubernetes cluster_hook.spool "
            f"cluster_hook.slurm cluster_hook.follow cluster_tell {_HOOK} cluster_run"
        ),
        "cluster_hook": "cluster_hook cluster_run",
        # What runs say of devices, over the years. Of an analysis it reads the tables, as anybody may.
        "cluster_fleet.judging": "",
        "cluster_fleet": ("cluster_fleet.judging cluster_words cluster_run"),
        # What is done about it: of the fleet it knows what is told, and where actions are written down.
        "cluster_act.values": "cluster_words.phrase cluster_run",
        "cluster_act.ways": "cluster_act.values cluster_run",
        "cluster_act": (
            "cluster_act.ways cluster_act.values cluster_words "
            "cluster_fleet.cli cluster_fleet.options "
            "cluster_fleet.identity cluster_fleet.judging.probes "
            "cluster_fleet.run_record cluster_fleet.status cluster_fleet.store "
            "cluster_fleet.story cluster_run"
        ),
        "demo": "cluster_run cluster_collect cluster_analysis cluster_simulate",
        "benchmarks.models": (
            "benchmarks.models.streams benchmarks.models.paths benchmarks.models.queues "
            "benchmarks.models.flows cluster_run.findings"
        ),
        # A model shares no code with the simulator, with the analysis, or with another model.
        **dict.fromkeys(
            [f"benchmarks.models.{name}" for name in ("streams", "paths", "queues", "flows")],
            "benchmarks.models.truth benchmarks.models.format cluster_run.findings",
        ),
        "benchmarks.detection": "benchmarks.models cluster_run cluster_analysis cluster_simulate",
        "benchmarks.executed": "benchmarks.models.format cluster_analysis",
        "benchmarks.fleet": "cluster_fleet",
        "benchmarks": ("cluster_run cluster_collect cluster_analysis cluster_simulate cluster_hook demo"),
    }.items()
}
#: With more modules than this a package has more than one thought.
MAX_MODULES = 15
#: With more lines than this a module has.
MAX_LINES = 350
#: With more lines than this what decides, from calls to findings, is no longer known to anybody as a whole.
MAX_DECIDING_LINES = 12_000
#: The full name of a module of ours.
_DOTTED = re.compile(r"(?:cluster_\w+|demo|benchmarks)(?:\.\w+)+")
#: Foreign libraries and the modules that may import them.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "asyncssh": ("cluster_collect.transports.ssh.by_asyncssh", "demo"),
    "paramiko": ("cluster_collect.transports.ssh.by_paramiko",),
    "dask": ("cluster_analysis.engine",),
    # The hook only makes certificates with it, for the cluster that it starts.
    "distributed": ("cluster_analysis.engine", "cluster_hook.follow.dask_allocation"),
    "dask_jobqueue": ("cluster_analysis.engine.clusters.slurm",),
    "jinja2": ("cluster_words.pages",),
    "msgspec": (
        *("cluster_analysis", "cluster_fleet.identity", "cluster_tell.outcome"),
        "benchmarks.models.format",
    ),
    "torch": ("benchmarks.executed.worker",),
    "ClusterShell": ("cluster_collect",),
    "matplotlib": ("cluster_analysis.reports.plots",),
    "scipy": ("cluster_analysis.numeric.tails",),
    "sqlalchemy": ("cluster_fleet.store", "cluster_fleet.tables"),
}
#: Where msgspec decodes or encodes. Everywhere else it makes the classes of values.
DECODING = (
    "cluster_analysis.sources",
    "cluster_analysis.discovery",
    "cluster_fleet.identity",
    "cluster_tell.outcome",
    "benchmarks.models.format",
)
OF_VALUES = ("msgspec.Struct", "msgspec.field", "msgspec.structs")
#: Libraries that one module alone may import: their errors are made ours there.
IN_ONE_MODULE = ("jinja2", "dask_jobqueue", "ClusterShell", "scipy", "shtab")


def modules() -> dict[str, Path]:
    """Return the dotted name and the file of every module of the project."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path) -> frozenset[str]:
    """Return the dotted names a module imports when it runs, those inside its functions too.

    A text that is the name of a module counts: registries name modules that are imported late.
    """
    return _imports(path)[0]


def imports_for_types(path: Path) -> frozenset[str]:
    """Return the dotted names a module imports under TYPE_CHECKING only."""
    return _imports(path)[1]


@cache
def _imports(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return what `imports_of` and `imports_for_types` do, of one walk through the file."""
    running: set[str] = set()
    typed: set[str] = set()
    todo: list[tuple[ast.AST, set[str]]] = [(_tree(path), running)]
    while todo:
        node, names = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            names = typed
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and names is running:
            names.update({node.value} if _DOTTED.fullmatch(node.value) else ())
        todo.extend((below, names) for below in ast.iter_child_nodes(node))
    return frozenset(running), frozenset(typed)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


@cache
def edges(*, for_types: bool = False) -> dict[str, set[str]]:
    """Return which modules of the project each module imports; `for_types`: those under TYPE_CHECKING."""
    known = modules()
    # A package itself is empty: who names it imports a module of it.
    there = {name for name, path in known.items() if path.name != "__init__.py"}
    read = imports_for_types if for_types else imports_of
    return {name: {*read(path)} & there - {name} for name, path in known.items()}


def levels() -> dict[str, dict[str, set[str]]]:
    """Return what modules and packages that lie beside each other import of each other, by their package.

    The one of all packages is `""`. A package imports what any module below it does, in whichever way.
    """
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name in modules():
        for imported in edges()[name] | edges(for_types=True)[name]:
            ours, theirs = name.split("."), imported.split(".")
            n = sum(takewhile(bool, map(eq, ours, theirs)))
            # What a package itself names is below it.
            if n < len(ours):
                found[".".join(ours[:n])][ours[n]].add(theirs[n])
    return found


def room_of(name: str) -> str:
    """Return the room that a module is in."""
    return max((room for room in ALLOWED if is_in(name, room)), key=len)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return every circle that a walk along the arrows of `graph` meets, as the names along it."""
    done: set[str] = set()
    found: list[list[str]] = []

    def walk(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            found.append([*trail[trail.index(name) :], name])
        if name in trail or name in done:
            return
        for imported in sorted(graph.get(name, ())):
            walk(imported, (*trail, name))
        done.add(name)

    for name in graph:
        walk(name, ())
    return found


def is_in(name: str, part: str) -> bool:
    """Return whether a module is `part` or lies below it."""
    return name == part or name.startswith(f"{part}.")


#: Numbers that decide nothing wherever they stand: counting, halves as exponents, units, digits of a text.
HARMLESS_NUMBERS = frozenset({0, 1, 2, 3, 0.5, 10, 12.0, 100, 1e3, 1e6, 1e-3, 1e-9})
#: Numbers in the rooms that decide nothing: sizes of memory and pictures, how long a text may be, rounds of a
#: loop.
NO_DECISIONS = frozenset(
    {"_BATCH", "_FLOAT_BYTES", "_N_LISTED", "_PASS_BYTES", "_ROUNDS", "_SAMPLED", "_TRIED_FIRST"}
    | {"_ALL_CELLS", "_MOST_CELLS", "_FEWEST_CELLS", "_LONGEST_PATH"}
)


def numbers_that_decide(path: Path) -> set[tuple[int, float]]:
    """Return the line and the value of each number of a module that belongs into the thresholds."""
    tree = _tree(path)
    named = {
        id(below)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and all(isinstance(one, ast.Name) and one.id in NO_DECISIONS for one in node.targets)
        for below in ast.walk(node)
    }
    digits = {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("round", "max")
        for below in node.args[1:]
    }
    return {
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
        and node.value not in HARMLESS_NUMBERS
        and id(node) not in named | digits
    }
