"""What the names of operators say, by the compiled reader where it works."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.compiled.arrays import GivenTexts, column, texts
from cluster_analysis.sources.compiled.reader import compiled


def told_by_names(op_names: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the operations (dictionary), which are point to point, and the running numbers in the group."""
    found = _read(op_names)
    if found is None:
        op_types = names.operations(op_names)
        return op_types, names.point_to_point(op_types), names.indices_in_group(op_names)
    stems, stem_names, indices = found
    op_types, is_p2p = operations(op_names, np.frombuffer(stems, np.int32), texts(stem_names).to_pylist())
    return op_types, pa.array(is_p2p), column(indices, pa.int32())


def operations_of(op_names: pa.Array) -> tuple[npt.NDArray[np.int32], list[str]] | None:
    """Return which operation each name has, and these; None where Python must find out.

    Empty names stand for no operator: they get the operation of another name.
    """
    found = _read(op_names)
    if found is None:
        return None
    stems, given, _ = found
    stem_names = texts(given).to_pylist()
    named = next(filter(None, stem_names), "")
    return operations_by_stem(np.frombuffer(stems, np.int32), [one or named for one in stem_names])


def _read(op_names: pa.Array) -> tuple[bytes, GivenTexts, bytes] | None:
    """Return stems and running numbers of names, by the compiled reader; None where Python must read them."""
    module = compiled()
    if module is None or not len(op_names) or op_names.null_count or op_names.offset:
        return None
    found: tuple[bytes, GivenTexts, bytes] | None = module.names(*op_names.buffers()[1:])
    return found


def operations_by_stem(
    stems: npt.NDArray[np.int32], stem_names: list[str]
) -> tuple[npt.NDArray[np.int32], list[str]] | None:
    """Return which operation each name has by its stem, and these; None where a stem says nothing."""
    if len(stems) and int(stems.min()) < 0:
        return None
    known = _operations_of(tuple(stem_names))
    return None if known is None else (known[1][stems], known[0].to_pylist())


def operations(
    op_names: pa.Array, stems: npt.NDArray[np.int32], stem_names: list[str]
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the operations (dictionary), and which are point to point; `stems` say which stem a name has."""
    known = _operations_of(tuple(stem_names))
    if known is None:
        # The operation stands behind the first number: few profilers name operators so.
        op_types = names.operations(op_names)
        return op_types, names.point_to_point(op_types).to_numpy(zero_copy_only=False)
    distinct, codes, is_p2p = known
    op_types = pa.DictionaryArray.from_arrays(pa.array(codes[stems]), distinct, safe=False)
    return op_types, is_p2p[stems]


@lru_cache(maxsize=64)
def _operations_of(
    stem_names: tuple[str, ...],
) -> tuple[pa.Array, npt.NDArray[np.int32], npt.NDArray[np.bool_]] | None:
    """Return the distinct operations, which of them each stem is, and which stems are point to point.

    None where a stem says nothing. The ranks' files have the same few stems.
    """
    values = [names.operation(stem) for stem in stem_names]
    if "unknown" in values:
        return None
    distinct = list(dict.fromkeys(values))
    codes = np.array([distinct.index(value) for value in values], np.int32)
    is_p2p = names.point_to_point(pa.array(values, pa.string()).dictionary_encode())
    return pa.array(distinct, pa.string()), codes, is_p2p.to_numpy(zero_copy_only=False)
