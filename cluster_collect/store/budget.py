"""The room of one host on this disk: promised before anything comes, and more where more is needed."""

from __future__ import annotations

from cluster_collect.store.writer import RunWriter

_STEP_BYTES = 64 << 20


class Budget:
    """What one host may write. A host that lies about its sizes, or has grown, asks for more on the way."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._left_bytes = 0

    def promise(self, n_bytes: int) -> None:
        """Announce that the host will write `n_bytes`.

        Raises:
            NoRoomError: they would not fit beside what is promised to others.
        """
        self._writer.promise(n_bytes)
        self._left_bytes += n_bytes

    def spend(self, n_bytes: int) -> None:
        """Count what has been written.

        Raises:
            NoRoomError: it is more than was promised, and there is no room for more.
        """
        if n_bytes > self._left_bytes:
            self.promise(max(n_bytes - self._left_bytes, min(_STEP_BYTES, self._writer.room_bytes() // 2)))
        self._left_bytes -= n_bytes
        self._writer.release(n_bytes)

    def release(self) -> None:
        """Give back what was not needed."""
        self._writer.release(self._left_bytes)
        self._left_bytes = 0
