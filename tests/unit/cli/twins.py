"""Terminal double, and connections of a command to servers in memory."""

import io
from typing import cast

from rich.text import Text

from pipeline.cli.session import Opener
from pipeline.clock import Clock
from pipeline.ids import ParticipantId
from pipeline.operations.connections import Connections
from pipeline.settings import Settings
from tests.unit.deploy.twins import World
from tests.unit.operations.twins import TwinConnections, TwinRecomputer


class Screen(io.StringIO):
    """Terminal double that records its output."""

    def isatty(self) -> bool:
        """True."""
        return True

    @property
    def plain(self) -> str:
        """The output without escape sequences and trailing spaces."""
        lines = Text.from_ansi(self.getvalue()).plain.splitlines()
        return "".join(f"{line.rstrip()}\n" for line in lines)


def opener(world: World, recomputer: TwinRecomputer | None = None) -> Opener:
    """Opener of connections to this world."""
    engine = recomputer or TwinRecomputer()

    def connect(settings: Settings, _clock: Clock) -> Connections:
        connections = TwinConnections(world, engine)
        connections.participant = ParticipantId(settings.participant)
        return cast("Connections", connections)

    return connect
