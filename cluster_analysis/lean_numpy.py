"""Keeps NumPy's import short: without what only people and type checkers read, and without masked arrays.

That takes 20 of its 60 ms. Arrow and NumPy ask of arrays whether they are masked; here none ever is. Whoever
asks for anything else of masked arrays gets them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

#: What is read by type checkers: here it may be anything.
_TYPES = ("numpy._typing", "numpy.typing")
#: Help texts of functions in C.
_TEXTS = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
_MASKED = "numpy.ma"


def keep_unread_numpy_out() -> None:
    """Import NumPy without these; without effect where it is imported already."""
    if "numpy" in sys.modules:
        return
    sys.modules.update({name: _Types(name) for name in _TYPES})
    sys.modules.update({name: ModuleType(name) for name in _TEXTS})
    numpy = import_module("numpy")
    if _MASKED not in sys.modules:
        sys.modules[_MASKED] = _NothingMasked(_MASKED)
    for name in (*_TYPES, _MASKED):
        # Else NumPy would look for them, and find itself.
        setattr(numpy, name.removeprefix("numpy."), sys.modules[name])


class _Type:
    """Stands for every type: `NDArray[float64] | None` is evaluated where it is an alias."""

    def __class_getitem__(cls, _: object) -> type[_Type]:
        return cls


class _Types(ModuleType):
    def __getattr__(self, name: str) -> type[_Type]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Type


class _NothingMasked(ModuleType):
    """What Arrow and NumPy ask of masked arrays, as long as there is none."""

    class MaskedArray:
        """No array is one of these."""

    @staticmethod
    def isMaskedArray(_: object) -> bool:  # noqa: N802 - NumPy's name
        """Return that it is none."""
        return False

    is_masked = isMaskedArray

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_MASKED) is self:
            del sys.modules[_MASKED]
            # Its import puts it in this one's place in NumPy.
            real = import_module(_MASKED)
            self.__dict__.update(vars(real))
        return vars(self)[name]
