"""The agent: one loop over one queue of events, for as long as the node lives."""

import logging
import queue
import threading

from pipeline.brain.decide import decide
from pipeline.brain.events import Event, Tick
from pipeline.brain.now import Now
from pipeline.brain.perform import Performer
from pipeline.brain.state import NodeState
from pipeline.clock import Clock, Deadline, steady_ms
from pipeline.errors import FencedError, MedusaError

TICK_S = 0.2
QUEUE_EVENTS = 10_000
STOP_DEADLINE_S = 30.0

_log = logging.getLogger(__name__)


class Mailbox:
    """The bounded queue that everything talks to the loop through.

    A full queue makes the teller wait: lanes then finish batches no faster than they are heard.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Event] = queue.Queue(maxsize=QUEUE_EVENTS)

    def tell(self, event: Event) -> None:
        """Put an event in line."""
        self._queue.put(event)

    def next(self) -> Event:
        """The next event; `Tick` when there is none for a while."""
        try:
            return self._queue.get(timeout=TICK_S)
        except queue.Empty:
            return Tick()


class Agent:
    """Decides and performs until `stop` is set, then stops its lanes."""

    def __init__(
        self, mailbox: Mailbox, performer: Performer, state: NodeState, clock: Clock
    ) -> None:
        self._mailbox = mailbox
        self._performer = performer
        self._state = state
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """The loop. An effect that fails is logged; the next poll shows what is still to do."""
        while not stop.is_set():
            self.step()
        self._performer.stop_all(Deadline.after(self._clock, STOP_DEADLINE_S, "stopping the lanes"))

    def step(self) -> None:
        """Take one event, decide, perform."""
        event = self._mailbox.next()
        now = Now(self._clock.now_ms(), steady_ms(self._clock))
        self._state, effects = decide(self._state, event, now)
        for effect in effects:
            try:
                self._performer.perform(effect, self._state)
            except FencedError as error:
                _log.info("%s", error)  # the catalog tells soon whose the fragment is now
            except MedusaError as error:
                _log.warning("%s: %s", type(effect).__name__, error)
