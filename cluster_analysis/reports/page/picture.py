"""What a picture adds to the payload of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

Array = np.ndarray[Any, Any]


class Picture(Struct, frozen=True):
    """Its entry of the header, None where there is nothing to draw, and its columns."""

    header: dict[str, Any]
    columns: dict[str, Array]
