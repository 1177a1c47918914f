"""The agent's event loop: one thread, one bounded queue of events."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from pipeline.agent.decide import decide
from pipeline.agent.events import Event, Tick
from pipeline.agent.now import Now
from pipeline.agent.perform import Performer
from pipeline.agent.state import NodeState
from pipeline.clock import Clock, Deadline, steady_ms
from pipeline.lanes.events import LaneEvent, LaneTimed

TICK_S = 0.2
QUEUE_EVENTS = 10_000
STOP_DEADLINE_S = 30.0


class Mailbox:
    """The bounded event queue between the agent's loop and every other thread.

    Back pressure: a full queue blocks its writers, so lanes finish batches no faster than the
    loop processes them.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Event] = queue.Queue(maxsize=QUEUE_EVENTS)

    def put(self, event: Event) -> None:
        """Put an event into the queue."""
        self._queue.put(event)

    def report(self, event: LaneEvent) -> None:
        """Put an event of a lane into the queue; an event time is dropped if the queue is full.

        Its thread must not wait: others wait for it, and the next one replaces it.
        """
        if isinstance(event, LaneTimed):
            with suppress(queue.Full):
                self._queue.put_nowait(event)
        else:
            self._queue.put(event)

    def next(self) -> Event:
        """The next event; `Tick` if none arrives for a while."""
        try:
            return self._queue.get(timeout=TICK_S)
        except queue.Empty:
            return Tick()


class Agent:
    """Decides and performs until `stop` is set, then stops its lanes.

    Args:
        mailbox: its events.
        performer: performs its effects.
        state: at first.
        clock: its present.
        decided: called after each decision.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        performer: Performer,
        state: NodeState,
        clock: Clock,
        decided: Callable[[], None] = lambda: None,
    ) -> None:
        self._mailbox = mailbox
        self._performer = performer
        self._state = state
        self._clock = clock
        self._decided = decided

    def run(self, stop: threading.Event) -> None:
        """Run the loop; the results of effects arrive as events."""
        while not stop.is_set():
            self.step()
        self._performer.stop_all(Deadline.after(self._clock, STOP_DEADLINE_S, "stopping the lanes"))

    def step(self) -> None:
        """Take one event, decide, perform."""
        event = self._mailbox.next()
        now = Now(self._clock.now_ms(), steady_ms(self._clock))
        self._state, effects = decide(self._state, event, now)
        for effect in effects:
            self._performer.perform(effect)
        self._decided()
