"""One HTTP connection, over h11: its requests are read and answered one after the other.

Every wait for the client has a deadline: otherwise a few hundred clients that send nothing, or take
none of their answers, would keep all others out for good.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import h11

from pipeline.clock import Clock
from schemas.rest.errors import MEDIA_TYPE, HttpError
from schemas.rest.messages import Application, GoneError, Request, Response

IDLE_WITHIN_S: Final = 5.0
"""How long a connection is kept without a byte of a further request."""
_READ_BYTES: Final = 256 * 1024
_CONTINUE: Final = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
_INVALID: Final = HttpError(400, message="Invalid HTTP request received.")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a client may take.

    Args:
        head_within_s: for the head of a request, and for the rest of one that is answered already.
        taken_within_s: until it takes anything more of its answers.
    """

    head_within_s: float
    taken_within_s: float


class Connection:
    """Answers the requests of one connection.

    Args:
        reader: what the client sends.
        writer: where the answers go.
        app: answers the requests.
        timeouts: how long the client may take.
        clock: for the dates of answers.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        app: Application,
        timeouts: Timeouts,
        clock: Clock,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._transport = writer.transport
        self._app = app
        self._timeouts = timeouts
        self._clock = clock
        self._http = h11.Connection(h11.SERVER)
        self._asked = False
        self._idle = True
        self._last = False

    async def serve(self) -> None:
        """Answer requests until one of both sides ends the connection."""
        # By itself asyncio reports what is unsent from 64 KiB on; with 0 for high, TLS always.
        self._transport.set_write_buffer_limits(high=1, low=0)
        with suppress(GoneError, OSError):  # a TimeoutError is an OSError
            try:
                while await self._exchange():
                    self._idle = True
            except h11.RemoteProtocolError:
                await self._refuse()
            except asyncio.CancelledError:
                self._transport.abort()
                raise
            finally:
                self._writer.close()
                await self._writer.wait_closed()

    def finish(self) -> None:
        """End the connection: at once without a request, or else with its answer."""
        self._last = True
        if self._idle:
            self._writer.close()

    async def _exchange(self) -> bool:
        """Answer one request; gives whether a further one may follow."""
        head = await self._head()
        self._asked, self._idle = True, False
        arrived = self._arrived()

        async def receive() -> bytes:
            try:
                return arrived.pop(0) if arrived else await self._part()
            except h11.RemoteProtocolError as error:
                await self._refuse()
                raise GoneError from error

        headers = {name.lower(): value.decode("latin-1") for name, value in head.headers}
        request = Request(head.method.decode("ascii"), head.target, headers, receive)
        response = await self._app(request)
        await self._send(response, with_body=head.method != b"HEAD")
        if self._http.our_state is not h11.DONE:
            return False
        async with asyncio.timeout(self._timeouts.head_within_s):
            while await self._part():
                pass
        self._http.start_next_cycle()
        return True

    async def _head(self) -> h11.Request:
        if self._asked and not self._http.trailing_data[0]:
            await self._first_bytes()
        try:
            async with asyncio.timeout(self._timeouts.head_within_s):
                while (event := self._http.next_event()) is h11.NEED_DATA:
                    await self._read()
        except TimeoutError:
            if not self._asked:
                self._transport.abort()  # TLS would wait for the client to take its leave
            raise
        if not isinstance(event, h11.Request):
            raise GoneError
        return event

    def _arrived(self) -> list[bytes]:
        """What of a body came with the head: when it is broken, no answer has been made yet."""
        parts = []
        while self._http.their_state is h11.SEND_BODY:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                break
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
        return parts

    async def _part(self) -> bytes:
        """The next part of a request's body; nothing at its end."""
        while self._http.their_state is h11.SEND_BODY:
            event = self._http.next_event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    self._write(_CONTINUE)
                await self._read()
        return b""

    async def _first_bytes(self) -> None:
        try:
            async with asyncio.timeout(IDLE_WITHIN_S):
                await self._read()
        except TimeoutError:
            async with asyncio.timeout(0):  # what came together with the deadline is in time
                await self._read()

    async def _read(self) -> None:
        data = await self._reader.read(_READ_BYTES)
        if not data:
            raise GoneError
        self._http.receive_data(data)

    async def _send(self, response: Response, *, with_body: bool = True) -> None:
        date = formatdate(self._clock.now_ms() / 1000, usegmt=True).encode()
        headers = [(b"date", date), *response.headers]
        if self._last:
            headers.append((b"connection", b"close"))
        reason = HTTPStatus(response.status).phrase.encode()
        start = h11.Response(status_code=response.status, headers=headers, reason=reason)
        body = h11.Data(data=response.body if with_body else b"")
        self._write(start, body, h11.EndOfMessage())
        await self._taken()

    def _write(self, *events: h11.Event) -> None:
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))

    async def _taken(self) -> None:
        """Wait until all that is answered is sent; leave a client that takes nothing of it."""
        unsent = self._transport.get_write_buffer_size()
        if not unsent:
            return
        drained = asyncio.ensure_future(self._writer.drain())
        try:
            while not (await asyncio.wait({drained}, timeout=self._timeouts.taken_within_s))[0]:
                before, unsent = unsent, self._transport.get_write_buffer_size()
                if unsent >= before:
                    self._transport.abort()
                    raise GoneError
            drained.result()
        finally:
            drained.cancel()

    async def _refuse(self) -> None:
        """Answer what is no HTTP, in the form of every other error.

        Once an answer to the same request has begun, there is nothing left to send.
        """
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = _INVALID.body
            length = (b"content-length", b"%d" % len(body))
            headers = ((b"content-type", MEDIA_TYPE.encode()), length, (b"connection", b"close"))
            await self._send(Response(_INVALID.status, headers, body))
