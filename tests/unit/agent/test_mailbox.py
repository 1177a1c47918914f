"""The queue of an agent, as lanes use it."""

import threading
from dataclasses import replace

from pipeline.agent.events import Tick
from pipeline.agent.loop import QUEUE_EVENTS, Mailbox
from pipeline.boundaries.profile import LaneProfile
from pipeline.ids import RunNumber
from pipeline.lanes.events import BatchFinished, LaneTimed
from pipeline.network.boxes.shape import Stateless
from tests.conftest import WaitFor
from tests.unit.agent.support import CARS, LANE, Agent, fresh_marker

MARKER = fresh_marker(CARS)
TIMED = LaneTimed(LANE, RunNumber(1), Agent().begin(MARKER, LaneProfile((CARS,), Stateless())))
FINISHED = BatchFinished(LANE, RunNumber(1), MARKER, 0, 1)


def test_reports_of_lanes_arrive_in_their_order() -> None:
    """Event times as well as batches."""
    mailbox, later = Mailbox(), replace(TIMED, run=RunNumber(2))
    for event in (TIMED, FINISHED, later):
        mailbox.report(event)
    assert [mailbox.next() for _ in range(4)] == [TIMED, FINISHED, later, Tick()]


def test_a_full_queue_delays_batches_and_drops_event_times(wait_for: WaitFor) -> None:
    """A later event time replaces a dropped one; whoever reports it holds what others wait for."""
    mailbox = Mailbox()
    for _ in range(QUEUE_EVENTS):
        mailbox.put(Tick())
    mailbox.report(TIMED)
    lane = threading.Thread(target=mailbox.report, args=(FINISHED,), daemon=True)
    lane.start()
    assert lane.is_alive()
    assert mailbox.next() == Tick()
    wait_for(lambda: not lane.is_alive(), "the batch is in the queue")
    events = [mailbox.next() for _ in range(QUEUE_EVENTS)]
    assert events == [Tick()] * (QUEUE_EVENTS - 1) + [FINISHED]
