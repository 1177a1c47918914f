"""Reads and writes the event log of a participant."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import NoSuchTopicError
from pipeline.clock import Clock
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.event_log.log import EventReader, EventWriter
from pipeline.event_log.places import KINDS, Stay, stays
from pipeline.ids import FragmentId, Millis
from pipeline.names import events_topic
from pipeline.operations.connections import Connections

WRITE_S: Final = 5.0
POLL_S: Final = 0.5
ASKED_EVERY_S: Final = 1.0
"""How often it is looked whether there is a topic, as long as there is none."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries to read.

    Args:
        about: a network, a fragment, `network.fragment`, a node or a subject; None: any.
        kinds: of these kinds; empty: of any.
        since_ms: written at this time or later; None: at any.
        last: at most so many of those that are there, the newest; None: all.
    """

    about: str | None = None
    kinds: frozenset[EventKind] = frozenset()
    since_ms: Millis | None = None
    last: int | None = None

    def has(self, event: LoggedEvent) -> bool:
        """Whether an entry is one of them, apart from their number."""
        return (
            (self.about is None or event.concerns(self.about))
            and (not self.kinds or event.kind in self.kinds)
            and (self.since_ms is None or event.at_ms >= self.since_ms)
        )


def write_event(event: LoggedEvent, connections: Connections) -> None:
    """Write an entry, and wait until it is delivered; at most three times `WRITE_S`.

    Raises:
        MedusaError: it cannot be written.
    """
    topics, _ = connections.lookups(WRITE_S)
    writer = EventWriter(connections.participant, topics, connections.producer(WRITE_S))
    writer.send(event)
    writer.flush(WRITE_S)


class EventLog:
    """The entries that are there, and new ones. Not thread-safe.

    Args:
        connections: to Kafka.
        selection: which entries.
    """

    def __init__(self, connections: Connections, selection: Selection) -> None:
        topic = events_topic(connections.participant)
        self._reader = EventReader(connections.reader(), topic)
        self._selection = selection
        self._begun = False

    @property
    def unreadable(self) -> int:
        """Number of records that are no entries, or ones of a later version."""
        return self._reader.unreadable

    def written(self) -> tuple[LoggedEvent, ...]:
        """The entries that are there, oldest first; none if nothing was logged yet."""
        found: deque[LoggedEvent] = deque(maxlen=self._selection.last)
        try:
            found.extend(filter(self._selection.has, self._reader.written()))
        except NoSuchTopicError:
            return ()
        self._begun = True
        return tuple(found)

    def new(self, clock: Clock, goes_on: Callable[[], bool]) -> Iterator[LoggedEvent]:
        """The entries after those of `written`, as they come, as long as `goes_on`."""
        while goes_on():
            if self._begun:
                yield from filter(self._selection.has, self._reader.next(POLL_S))
                continue
            try:
                yield from filter(self._selection.has, self._reader.written())
                self._begun = True
            except NoSuchTopicError:
                clock.sleep(ASKED_EVERY_S)


def stays_of(fragment: FragmentId, connections: Connections) -> tuple[Stay, ...]:
    """The nodes that have run a fragment, as far back as the event log reaches."""
    network = fragment.network.name
    log = EventLog(connections, Selection(network, KINDS))
    return stays(log.written(), network, fragment.fragment)
