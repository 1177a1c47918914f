"""Session of a command: the project's settings, the printer, and the connections."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from brokers.embedded.control import running_stack
from pipeline.cli.output import Printer
from pipeline.cli.project import Project, load_project
from pipeline.cli.who import who_and_where
from pipeline.clock import Clock
from pipeline.errors import UnavailableError
from pipeline.ids import NetworkId, NetworkName, ParticipantId
from pipeline.settings import Settings
from pipeline.system_clock import SystemClock

if TYPE_CHECKING:
    from pipeline.event_log.event import EventKind
    from pipeline.operations.connections import Connections

_PLACES = ("network", "fragment", "node")

Opener = Callable[[Settings, Clock], "Connections"]
"""Opens the connections of a command; tests pass one that returns in-memory doubles."""


@dataclass
class Session:
    """Context of one call of a command.

    Args:
        printer: writes output.
        flags: settings given on the command line.
        verbose: whether to print more details on stderr.
        opener: opens connections; None: to the real servers.
        elsewhere: whether `--registry` selects a registry other than that of the settings.
    """

    printer: Printer
    flags: Mapping[str, str]
    verbose: bool = False
    opener: Opener | None = None
    clock: Clock = field(default_factory=SystemClock)
    elsewhere: bool = False

    @cached_property
    def project(self) -> Project:
        """The settings; read at first use, so that `init` and `--help` need no valid file."""
        return load_project(self.flags, os.environ, Path.cwd())

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.project.settings

    @property
    def participant(self) -> ParticipantId:
        """The participant for which commands act."""
        return ParticipantId(self.settings.participant)

    def network(self, name: str) -> NetworkId:
        """A network of the participant."""
        return NetworkId(self.participant, NetworkName(name))

    @contextmanager
    def connect(self) -> Iterator["Connections"]:
        """Connections, each opened at first use, all closed at the end."""
        opener = self.opener or _open_real
        connections = opener(self.settings, self.clock)
        try:
            with self.suggesting_up():
                yield connections
        finally:
            connections.close()

    def log_event(
        self, connections: "Connections", kind: "EventKind", *, why: str = "", **about: str
    ) -> None:
        """Write an entry into the event log; if that fails, the command has succeeded all the same.

        Args:
            connections: of the command.
            kind: what was done.
            why: one line.
            about: `network`, `fragment`, `node`; any other one is a fact.
        """
        if self.elsewhere:  # at another registry than that of the settings
            return
        # As for the drivers.
        from pipeline.event_log.event import LIST_MAX, LoggedEvent, one_line  # noqa: PLC0415
        from pipeline.operations.event_log import write_event  # noqa: PLC0415

        facts = {k: v for k, v in about.items() if k not in _PLACES and v}
        try:
            event = LoggedEvent(
                self.clock.now_ms(),
                kind,
                by=who_and_where(),
                network=about.get("network", ""),
                fragment=about.get("fragment", ""),
                node=about.get("node", ""),
                why=one_line(why),
                facts=tuple((key, one_line(value, LIST_MAX)) for key, value in facts.items()),
            )
            write_event(event, connections)
        except Exception as error:  # noqa: BLE001 - what the command is for is done
            self.printer.note(f"this is not in the event log: {error}")

    @contextmanager
    def suggesting_up(self) -> Iterator[None]:
        """Add `medusa up` to the hint of an unreachable server, unless a stack runs already."""
        try:
            yield
        except UnavailableError as error:
            error.hint = self._hint(error.hint)
            raise

    def read_subject(self, subject: str) -> str | None:
        """The newest schema of a subject; connects to the registry only when it is called."""
        with self.connect() as connections:
            found = connections.registry.latest(subject)
        return found.text if found else None

    def _hint(self, hint: str) -> str:
        if self.elsewhere or running_stack(self.project.data) is not None:
            return hint
        return f"{hint} Nothing runs for this project here; `medusa up` starts it.".strip()


def _open_real(settings: Settings, clock: Clock) -> "Connections":
    # The drivers take a third of a second to import; commands without servers do not need them.
    from pipeline.operations.connections import Connections  # noqa: PLC0415

    return Connections(settings, clock)
