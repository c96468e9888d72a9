"""Keeps imports short: pyarrow from importing what is not used here, libraries from setting things aside.

pyarrow looks for pandas when it makes its first array, and imports it where it is installed: 0.4 s and
40 MB for nothing that is used here. It looks once. So that one time it is told there is no pandas;
afterwards `import pandas` and `to_pandas()` work as ever. In the same way its sums by group look for its
readers of data sets, with file systems and SSL: 0.05 s in each process. And it makes a function of Python,
with signature and help text, for each of its 290 in C++, of which a run asks for 50: 0.04 s.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Python's own number is 700, and ten such looks until the next larger one.
_OBJECTS_UNTIL_LOOKED_FOR = 20_000


class _Without(MetaPathFinder):
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self._name:
            raise ImportError(f"{self._name} is not looked for at start-up")
        return None


@contextmanager
def _without(name: str) -> Iterator[None]:
    finder = _Without(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def keep_pandas_out() -> None:
    """Have pyarrow look for pandas now, in vain; without effect where pandas is imported already."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415

    with _without("pandas"):
        pa.array([""])


def keep_data_sets_out() -> None:
    """Have pyarrow's sums by group do without its data sets, which no table in memory needs."""
    if "pyarrow.dataset" in sys.modules:
        return
    with _without("pyarrow.dataset"):
        import pyarrow.acero  # noqa: F401, PLC0415


def keep_help_texts_out() -> None:
    """Have Arrow make its functions when they are asked for, and without their help texts.

    It does so in ways of its own: where another pyarrow has others, its functions are imported as ever.
    """
    if "pyarrow.compute" in sys.modules:
        return
    core: Any = import_module("pyarrow._compute")
    registry = core.function_registry
    texts = ModuleType("pyarrow.vendored.docscrape")
    texts.__dict__["NumpyDocString"] = lambda _: {"Parameters": []}
    core.function_registry = lambda: _FewFunctions(registry())
    try:
        with _standing_in(texts):
            functions: Any = import_module("pyarrow.compute")
        functions.function_registry = registry
        functions.__getattr__ = partial(_made, functions, functions._make_generic_wrapper)
    except (AttributeError, KeyError):
        sys.modules.pop("pyarrow.compute", None)
    finally:
        core.function_registry = registry


class _FewFunctions:
    """Arrow's functions, of which it lists those only that its module asks for while it is imported."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self.get_function = registry.get_function

    def list_functions(self) -> list[str]:
        return [name for name in self._registry.list_functions() if name == "utf8_zero_fill"]


def _made(functions: Any, wrapper: Callable[..., object], name: str) -> object:
    """Return a function of Arrow's by its name in Python, which is kept for the next time."""
    own_name = name.removesuffix("_") if name in ("and_", "or_") else name
    try:
        function = functions.function_registry().get_function(own_name)
    except KeyError:
        raise AttributeError(f"module 'pyarrow.compute' has no attribute {name!r}") from None
    made = wrapper(name, function, functions._get_options_class(function), function.arity)
    setattr(functions, name, made)
    return made


def lean_dask() -> None:
    """Import Dask's schedulers of this machine without what they have no use for: half of its time.

    That shows values in notebooks, counts processors, reads settings (all that matter here are given), and
    looks through all that is installed for what knows the sizes of values. A Dask cluster may need each of
    them, so this must not be called before one.
    """
    if "dask" in sys.modules:
        return
    settings, installed = ModuleType("yaml"), ModuleType("importlib_metadata")
    settings.__dict__["safe_load"] = lambda _: {}
    installed.__dict__["entry_points"] = lambda **_: ()
    with _without("psutil"), _without("jinja2"), _standing_in(settings), _standing_in(installed):
        import_module("dask.local")


@contextmanager
def _standing_in(module: ModuleType) -> Iterator[None]:
    """Have `module` imported for the one of its name that is installed, unless that is imported already."""
    if module.__name__ in sys.modules:
        yield
        return
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def keep_no_spare_memory() -> None:
    """Have Arrow take its memory from the C library; to be called before pyarrow is imported.

    Its own allocator reserves 18 MB in each process before the first large table; time is the same.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def keep_no_spare_threads() -> None:
    """Have NumPy start no threads for matrices; to be called before it is imported.

    None here is large, and starting the threads takes longer than all that they could save.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def collect_from_now_on() -> None:
    """Look for garbage again, but not among what was imported while that was off; else do nothing.

    Little of what is made here is garbage that only a look finds: it is looked for less often.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(_OBJECTS_UNTIL_LOOKED_FOR)
        gc.enable()


def end_without_tidying(codes: Sequence[int]) -> None:
    """Have Python end with the exit code in `codes`, once there is one, without taking values apart first.

    To be called before anything is started: what registers itself later to be done at the end is done before.
    """
    atexit.register(_end, codes)


def _end(codes: Sequence[int]) -> None:
    with suppress(OSError, ValueError):  # Python says what became of it
        sys.stdout.flush()
        sys.stderr.flush()
        if codes:
            os._exit(codes[0])
