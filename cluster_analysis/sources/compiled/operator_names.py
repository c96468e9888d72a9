"""Parse names of operators by the stems that the compiled reader found in them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names


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
