"""Where the output of a running command goes, whichever SSH library brings it."""

from __future__ import annotations

import asyncio

from cluster_collect.transports.protocol import MAX_ERROR_BYTES, Receive


class CommandOutput:
    """Hands standard output to a receiver, keeps the first 64 KiB of errors, and knows the end.

    `ended` is done when the command is; it holds the error that ended it, be it the receiver's.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive: Receive | None = receive
        self._errors = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Fetched when nobody waits for it, or asyncio would report it as forgotten.
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    @property
    def errors(self) -> bytes:
        """What has come on the error output."""
        return bytes(self._errors)

    def take(self, data: bytes) -> float:
        """Give output to the receiver and return the pause it asks for; what it raises is the end."""
        if self._receive is None:
            return 0.0
        try:
            return self._receive(data)
        except Exception as error:
            self.end(error)
            self.forget()
            return 0.0

    def complain(self, data: bytes) -> None:
        """Keep what came on the error output."""
        self._errors += data[: MAX_ERROR_BYTES - len(self._errors)]

    def end(self, error: Exception | None = None) -> None:
        """The command has ended; only the first reason counts."""
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def redirect(self, receive: Receive) -> None:
        """Give further output to another receiver."""
        self._receive = receive

    def forget(self) -> None:
        """Drop whatever still arrives."""
        self._receive = None
