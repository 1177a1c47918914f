"""HTTP connections that have so long for the head of a request, and of which there are so many.

On one too many, requests are answered with 503; without a limit of time, some hundred that send
half a head each would keep everybody else out for good.
"""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from schemas.rest.app import overloaded, told
from schemas.rest.errors import HttpError
from schemas.rest.reading import MEDIA_TYPE


def patient(head_within_s: float, connections_max: int) -> type["Patient"]:
    """The protocol of connections that have so long for each head, and of which there are so many.

    The server's own answers to too many, and to what is no HTTP, are plain text.
    """
    limits = {"head_within_s": head_within_s, "connections_max": connections_max}
    return type("BoundedPatient", (Patient,), limits)


class Patient(H11Protocol):
    """One connection."""

    head_within_s: ClassVar[float]
    connections_max: ClassVar[int]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._giving_up: asyncio.TimerHandle | None = None
        self._served = self.app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the class above
        """A client is there."""
        super().connection_made(transport)
        self._watch()

    def handle_events(self) -> None:
        """Whole parts of requests are there."""
        self.app = overloaded if len(self.connections) > self.connections_max else self._served
        super().handle_events()

    def send_400_response(self, msg: str) -> None:
        """A client has sent what is no HTTP: it hears so in the form of every other error."""
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
        body = told(HttpError(400, message=msg))
        start = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

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
            self._giving_up = self.loop.call_later(self.head_within_s, self.transport.close)

    def _stop(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
