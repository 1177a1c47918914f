"""HTTP connections that are closed when a request's head does not come to its end in time.

The server counts connections, and answers 503 when there are too many; without a limit of time,
some hundred that send half a head each would keep everybody else out for good.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def patient(head_within_s: float) -> type[H11Protocol]:
    """The protocol of connections that have so long for each head."""

    class Patient(H11Protocol):
        """One connection."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self._giving_up: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the class above
            """A client is there."""
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            """A client has sent something."""
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            """A client has gone."""
            super().connection_lost(exc)
            self._stop()

        def _watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self._giving_up is None and not self.transport.is_closing():
                self._giving_up = self.loop.call_later(head_within_s, self.transport.close)

        def _stop(self) -> None:
            if self._giving_up is not None:
                self._giving_up.cancel()
                self._giving_up = None

    return Patient
