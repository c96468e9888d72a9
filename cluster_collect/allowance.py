"""How much a host may say of what it has: all records of a listing are counted here, whatever they are."""

from __future__ import annotations

from cluster_collect.faults import HostileDataError

#: Half a million files with the names that profilers write.
MAX_LISTING_BYTES = 96 << 20


class Allowance:
    """What is left of the entries and bytes that one listing may hold.

    Every byte that is read of it is taken here before anybody looks at it, so that a new kind of record
    is bounded, too. `max_bytes` counts names where no records travel (SFTP).
    """

    def __init__(self, max_entries: int, max_bytes: int = MAX_LISTING_BYTES) -> None:
        self._max_entries = self._left_entries = max_entries
        self._max_bytes = self._left_bytes = max_bytes

    def take_bytes(self, n_bytes: int) -> None:
        """So many bytes have come.

        Raises:
            HostileDataError: these are more than a listing may have.
        """
        self._left_bytes -= n_bytes
        if self._left_bytes < 0:
            raise HostileDataError(f"the listing holds more than {self._max_bytes >> 20} MiB")

    def take_entry(self, n_bytes: int = 0) -> None:
        """One more thing is listed, be it a file or a link; `n_bytes` where its name was not counted yet.

        Raises:
            HostileDataError: these are more than a listing may have.
        """
        self._left_entries -= 1
        if self._left_entries < 0:
            raise HostileDataError(f"the listing holds more than {self._max_entries} entries")
        self.take_bytes(n_bytes)
