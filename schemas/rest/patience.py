"""HTTP connections of clients for whom nobody waits for ever.

Each has so long for the head of a request, and has to take some of its answers every so often:
otherwise some hundred that do neither would keep everybody else out for good.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from schemas.rest.app import told
from schemas.rest.errors import HttpError
from schemas.rest.reading import MEDIA_TYPE

Application = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take.

    Args:
        head_within_s: for the head of a request, and for the rest of one that is answered already.
        taken_within_s: until it takes anything more of its answers.
    """

    head_within_s: float
    taken_within_s: float


class Patient(H11Protocol):
    """One connection.

    Args:
        patience: how long its client may take.
        inside: holds this until the connection is lost.
        app: answers its requests; None: the application of the server.
        named: what the class above takes.
    """

    def __init__(
        self,
        patience: Patience,
        inside: "set[Patient]",
        app: Application | None = None,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self._patience = patience
        self._inside = inside
        self._inside.add(self)
        self._giving_up: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        if app is not None:
            self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the class above
        """A client is there."""
        super().connection_made(transport)
        # By itself asyncio tells of what is unsent from 64 KiB on; with 0 for high, TLS always.
        transport.set_write_buffer_limits(high=1, low=0)
        self._watch()

    def leave_if_never_met(self) -> None:
        """The connection is lost before it was made, as when TLS cannot be agreed on."""
        if self.transport is None:
            self._inside.discard(self)

    def send_400_response(self, msg: str) -> None:
        """A client has sent what is no HTTP: it hears so in the form of every other error.

        Once an answer to the same request has begun, there is nothing left to say.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
            body = told(HttpError(400, message=msg))
            start = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self._asked:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """A client has sent something."""
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """A part of what is answered cannot be sent as yet."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """All that is answered is sent."""
        super().resume_writing()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client has gone."""
        super().connection_lost(exc)
        self._inside.discard(self)
        self._stop_watching()
        self._stop_looking()

    @property
    def _asked(self) -> bool:
        """Whether the head of any request came to its end."""
        return self.scope is not None

    def _watch(self) -> None:
        """Have a deadline exactly as long as a head, or the rest of a request, is awaited."""
        if self.conn.their_state is not h11.IDLE and self.conn.our_state is not h11.DONE:
            self._stop_watching()
        elif self._giving_up is None and not self.transport.is_closing():
            self._giving_up = self.loop.call_later(self._patience.head_within_s, self._give_up)

    def _stop_watching(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _give_up(self) -> None:
        if not self._asked:
            # Nothing was answered that is still to be taken: TLS has nobody to take leave of.
            self.transport.abort()
        else:
            self.transport.close()

    def _look_again(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self._patience.taken_within_s, self._look, unsent)

    def _stop_looking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._look_again()
