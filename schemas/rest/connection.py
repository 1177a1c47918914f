"""HTTP/1.1 server connection over h11; its requests are answered one after the other.

Every wait for the client has a timeout: otherwise a few hundred clients that send nothing, or read
none of their answers, would occupy all connections for ever.
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
"""Keep-alive timeout: until the first byte of the next request."""
_READ_BYTES: Final = 256 * 1024
_CONTINUE: Final = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
_INVALID: Final = HttpError(400, message="Invalid HTTP request received.")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a client.

    Args:
        head_within_s: for the head of a request, and for the rest of one that is answered already.
        taken_within_s: for any progress in sending an answer.
    """

    head_within_s: float
    taken_within_s: float


class Connection:
    """Server side of one connection.

    Args:
        reader: stream from the client.
        writer: stream to the client.
        app: answers the requests.
        timeouts: timeouts of the client.
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
        self._had_request = False
        self._idle = True
        self._last = False

    async def serve(self) -> None:
        """Answer requests until either side ends the connection."""
        # asyncio's default reports unsent bytes from 64 KiB on; with high=0, TLS always does.
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
        """End the connection: at once if it is idle, else after the present answer."""
        self._last = True
        if self._idle:
            self._writer.close()

    async def _exchange(self) -> bool:
        """Answer one request; returns whether another one may follow."""
        head = await self._head()
        self._had_request, self._idle = True, False
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
        if self._had_request and not self._http.trailing_data[0]:
            await self._first_bytes()
        try:
            async with asyncio.timeout(self._timeouts.head_within_s):
                while (event := self._http.next_event()) is h11.NEED_DATA:
                    await self._read()
        except TimeoutError:
            if not self._had_request:
                self._transport.abort()  # TLS would wait for the client's close_notify
            raise
        if not isinstance(event, h11.Request):
            raise GoneError
        return event

    def _arrived(self) -> list[bytes]:
        """The parts of a body that arrived with the head; errors in them precede the answer."""
        parts = []
        while self._http.their_state is h11.SEND_BODY:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                break
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
        return parts

    async def _part(self) -> bytes:
        """The next part of a request's body; empty at its end."""
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
            async with asyncio.timeout(0):  # bytes that arrived at the deadline are in time
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
        """Wait until the answer is sent; disconnects a client that reads nothing of it."""
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
        """Answer an invalid HTTP request with 400, in the form of other errors.

        Sends nothing if an answer to the same request has begun.
        """
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = _INVALID.body
            length = (b"content-length", b"%d" % len(body))
            headers = ((b"content-type", MEDIA_TYPE.encode()), length, (b"connection", b"close"))
            await self._send(Response(_INVALID.status, headers, body))
