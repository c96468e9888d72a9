"""Text to numbers, exactly: what is no number becomes null and is counted, never 0.

Units: the profilers write ms and MB (10^6 bytes) in the communication files, µs in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_run.ids import MAX_RANKS

US_PER_MS = 1e3
BYTES_PER_MB = 1e6
BYTES_PER_KB = 1e3
#: r1.x counts device ticks of 10 ns.
TICKS_PER_US = 100.0
NS_PER_TICK = 10
NS_PER_US = 1000
PS_PER_US = 1_000_000
PS_PER_NS = 1000
#: 2.5 hours: no kernel takes longer.
MOST_PS = 1 << 53

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
#: µs; what is larger does not fit ns of 64 bits.
_STAMP = r"^(\d{1,15}|[0-8]\d{15}|9[01]\d{14})(\.\d*)?$"
#: No count or identifier has more than 18 digits.
_MAX_WHOLE = 10**18
_NULLS = pa.array(["", "N/A", "NA", "null", "None"])


def to_float64(text: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, int]:
    """Return `text` as float64, and how many cells held something that is not a finite number.

    Such cells become null. Empty cells and `N/A` become null too, but are not counted.
    """
    plain = _plainly_cast(text, pa.float64())
    if plain is not None and np.isfinite(plain.to_numpy()).all():
        return plain, 0
    cells, n_given = _numeric(text, _NUMBER)
    numbers = pc.cast(cells, pa.float64())
    numbers = pc.if_else(pc.is_finite(numbers), numbers, None)
    return numbers, n_given - _n_known(numbers)


def floats_of(text: pa.Table, names: Sequence[str]) -> tuple[dict[str, pa.Array], dict[str, int]]:
    """Return the columns `names` of a table of text that it has, as `to_float64` does, by their names."""
    pairs = {name: to_float64(text[name]) for name in names if name in text.column_names}
    return {name: one for name, (one, _) in pairs.items()}, {name: n for name, (_, n) in pairs.items() if n}


def to_ns(text: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, int]:
    """Return time stamps in µs, given as text, as int64 ns, exactly; and the number of bad cells.

    A float64 cannot hold them: near the year 2024 its neighbours are 0.25 µs apart.
    """
    plain = _plainly_ns(text)
    if plain is not None:
        return plain, 0
    cells, n_given = _numeric(text, _STAMP)
    # Digits below the nanosecond are cut: no profiler writes them, and they carry nothing.
    kept = pc.replace_substring_regex(cells, r"^(\d+\.?\d{0,3})\d*$", r"\1")
    nanoseconds = _ns_of_decimal(pc.cast(kept, pa.decimal128(22, 3)))
    return nanoseconds, n_given - _n_known(nanoseconds)


def floats_to_ns(microseconds: pa.Array) -> tuple[pa.Array, int]:
    """Return time stamps in µs, given as float64, as int64 ns; and the number of bad ones.

    The shortest text that names a float is what was written, and the decimals that it has are exact.
    """
    # Arrow writes it with an exponent, which only decimals are made of.
    plain = _plainly_ns(microseconds)
    if plain is not None and not plain.null_count:
        return plain, 0
    return to_ns(pa.array([repr(value) for value in microseconds.to_pylist()], pa.string()))


def us_to_ps(microseconds: pa.Array) -> pa.Array:
    """Return times in µs as whole ps, int64; null for what is missing or longer than MOST_PS."""
    scaled = pc.round(pc.multiply(microseconds, float(PS_PER_US)))
    near = pc.if_else(pc.less_equal(pc.abs(scaled), float(MOST_PS)), scaled, None)
    return pc.cast(near, pa.int64())


def ps_to_us(picoseconds: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return whole ps as the float64 of µs that is nearest."""
    return pc.divide(pc.cast(picoseconds, pa.float64(), safe=False), float(PS_PER_US))


def _plainly_ns(microseconds: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """Return time stamps as ns where every one is plain as it stands: the usual case, in one call."""
    try:
        plain = _ns_of_decimal(pc.cast(pc.cast(microseconds, pa.string()), pa.decimal128(22, 3)))
    except pa.ArrowInvalid:
        return None
    return None if pc.any(pc.less(plain, 0)).as_py() else plain


def _ns_of_decimal(microseconds: pa.Array) -> pa.Array:
    return pc.cast(pc.multiply(microseconds, pa.scalar(NS_PER_US, pa.int16())), pa.int64())


def to_int64(text: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, int]:
    """Return `text` as int64, and how many cells held something else; those become null."""
    plain = _plainly_cast(text, pa.int64())
    if plain is not None and _is_decimal(text):
        whole = plain.to_numpy()
        if ((whole < _MAX_WHOLE) & (whole > -_MAX_WHOLE)).all():
            return plain, 0
    cells, n_given = _numeric(text, r"^-?\d{1,18}(\.0*)?$")
    numbers = pc.cast(pc.replace_substring_regex(cells, r"\.0*$", ""), pa.int64())
    return numbers, n_given - _n_known(numbers)


def _plainly_cast(text: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | None:
    """Return `text` as numbers where every cell is one as it stands: the usual case, in one call."""
    cells = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    try:
        numbers = pc.cast(cells if pa.types.is_string(cells.type) else pc.cast(cells, pa.string()), kind)
    except pa.ArrowInvalid:
        return None
    return None if numbers.null_count else numbers


def _is_decimal(text: pa.Array | pa.ChunkedArray) -> bool:
    """Whether no cell is hexadecimal. Arrow reads such numbers, but a damaged digit must not make one."""
    return not pc.any(pc.match_substring(pc.cast(text, pa.string()), "x", ignore_case=True)).as_py()


def local_rank(text: object) -> int | None:
    """Return a rank in its group; None for anything that no job has."""
    digits = str(text)
    return int(digits) if digits.isdecimal() and len(digits) < len(str(MAX_RANKS)) else None


def _numeric(text: pa.Array | pa.ChunkedArray, pattern: str) -> tuple[pa.Array, int]:
    """Return the cells that are numbers of this pattern, else null, and how many say anything at all."""
    cells = _stripped(text)
    given = pc.and_(pc.is_valid(cells), pc.invert(pc.is_in(cells, value_set=_NULLS)))
    numeric = pc.fill_null(pc.match_substring_regex(cells, pattern), False)
    return pc.if_else(numeric, cells, None), pc.sum(given).as_py() or 0


def _n_known(values: pa.Array) -> int:
    known: int = len(values) - values.null_count
    return known


def _stripped(text: pa.Array | pa.ChunkedArray) -> pa.Array:
    cells = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    # Ascend writes a tab after time stamps, so that spreadsheets do not round them.
    return pc.utf8_trim_whitespace(pc.cast(cells, pa.string()))
