"""An HTTP server whose connections come in by a door."""

import socket
from typing import Any

import uvicorn

from schemas.rest.app import overloaded
from schemas.rest.door import Door, Inside
from schemas.rest.patience import Patience, Patient
from schemas.rest.room import Entry, Room


class PatientServer(uvicorn.Server):
    """Serves an application to so many clients at once, none of whom is waited for for ever.

    Args:
        config: of uvicorn.
        listener: where clients come; closed with the server.
        room: for how many.
        patience: how long each may take.
    """

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, room: Room, patience: Patience
    ) -> None:
        super().__init__(config)
        self._listener = listener
        self._room = room
        self._patience = patience
        self._door: Door | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let clients in by the door, and by no socket of uvicorn's own."""
        self._door = Door(self._listener, self._room, self._meet, self._tls())
        self._door.open()
        await super().startup(sockets=sockets or [])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody else in; then answer what is under way."""
        if self._door is not None:
            self._door.close()
        await super().shutdown(sockets=sockets)

    def _meet(self, entry: Entry, inside: Inside) -> Patient:
        return Patient(
            self._patience,
            inside,
            overloaded if entry is Entry.TOLD else None,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    def _tls(self) -> dict[str, Any]:
        if self.config.ssl is None:
            return {}
        return {
            "ssl": self.config.ssl,
            "ssl_handshake_timeout": self._patience.head_within_s,
            "ssl_shutdown_timeout": self._patience.taken_within_s,
        }
