from dataclasses import replace
from typing import Any

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.examples.view import Arrow, Observation, Reader, View, as_lines, troubles
from pipeline.ids import FragmentName, Millis, TopicName
from tests.unit.catalog.support import NOTHING_READ

MOVING = Reader(FragmentName("moving"), 1_012)


def status(name: str, **facts: Any) -> FragmentStatus:
    """A node's report of a fragment of the toll network."""
    return replace(NOTHING_READ, fragment=FragmentName(name), **facts)


def observation(*statuses: FragmentStatus) -> Observation:
    """An observation of these fragments."""
    return Observation(Millis(0), {}, {s.fragment: s for s in statuses})


def test_the_screen_contains_arrows_and_newest_results() -> None:
    """With rates and lags in columns, and the last results; an unknown lag is a dash."""
    view = View(
        headline="tolls: 5 s of 60 s fed",
        graph="[car-sightings] -> moving\n",
        arrows=(
            Arrow(
                TopicName("car-sightings"), 2_500, 499.6, (Reader(FragmentName("moving"), 1_012),)
            ),
            Arrow(TopicName("tolls"), 0, 0.0, (Reader(FragmentName("pay"), None),)),
            Arrow(TopicName("toll-notifications"), 0, 0.0, ()),
        ),
        newest=(),
        troubles=("moving is restarting: no broker",),
    )
    assert as_lines(view) == (
        "tolls: 5 s of 60 s fed",
        "",
        "ARROW                 RECORDS    PER S  READ BY (BEHIND)",
        "car-sightings           2,500      500  moving (1,012)",
        "tolls                       0        0  pay (-)",
        "toll-notifications          0        0",
        "",
        "the first window has not closed yet",
        "",
        "! moving is restarting: no broker",
    )


def test_problems_contain_the_messages_of_the_nodes() -> None:
    """A fragment that does not run and one with dead letters are both named; good ones are not."""
    seen = observation(
        status("a"),
        status("b", state=LaneState.FAILED, last_error="no space left"),
        status("c", dead_letters=2),
    )
    assert troubles(seen) == ("b is failed: no space left", "c has 2 dead letters")
