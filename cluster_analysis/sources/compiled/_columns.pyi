from collections.abc import Sequence
from typing import Any

_Memory = tuple[object, int, int]

def operators(
    paths: Sequence[str], has_places: bool, needed: int, measured: int, /
) -> dict[str, Any] | None: ...
def links(paths: Sequence[str], /) -> dict[str, Any] | None: ...
def numbers(planes: bytes, n_planes: int, is_delta: bool, begin: int, step: int, /) -> bytes | None: ...
def filled(
    letters: bytes, part_ends: bytes, stem_ends: bytes, places: bytes, numbers: bytes, /
) -> tuple[bytes, bytes] | None: ...
def regroup(
    keys: object,
    files: object,
    offsets: object,
    lengths: object,
    key_texts: tuple[object, object],
    ranks: object,
    descriptors: object,
    /,
) -> bytes | None: ...
def number(content: bytes, /) -> float | None: ...
