"""A node fails whose fragment has `reliability: amnesia`: what the gap touches is not published."""

from collections import Counter
from collections.abc import Iterator

import pytest

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.event_log.codec import decode
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import FragmentId, Millis
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames, events_topic
from tests.system.nodes.feeds import (
    BASE_S,
    COUNTS,
    SCHEMAS,
    WITHIN_S,
    Feed,
    await_results,
    log_of,
    owner,
    running_nodes,
)
from tests.system.support import WINDOWS, Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

NAME = "forgetful"
NODES = ("forgets_a", "forgets_b")
WINDOW_MS = 10_000
Result = tuple[str, int, int, int]


@pytest.fixture(scope="module")
def nodes(medusa: Installation) -> Iterator[dict[str, Child]]:
    """Two nodes with checkpoints of their own."""
    with running_nodes(medusa, *NODES) as processes:
        yield processes


def markers(medusa: Installation) -> list[CommitMarker]:
    """The commit markers of the fragment."""
    topic = FragmentNames(FragmentId(network_id(NAME), COUNTS)).markers
    return [decode_marker(one.value or b"", topic) for one in medusa.records(topic)]


def gaps(medusa: Installation) -> list[LoggedEvent]:
    """The gaps in the event log."""
    topic = events_topic(network_id(NAME).participant)
    events = [decode(one.value, topic) for one in medusa.records(topic)]
    return [one for one in events if one.kind == EventKind.GAP and one.network == NAME]


def results(medusa: Installation) -> Counter[Result]:
    """The windows that were published: sensor, start in seconds, number and sum of readings."""
    return Counter(
        (row["sensor"], int(row["window_start"].timestamp()) - BASE_S, row["n"], row["total"])
        for row in medusa.decoded(f"{NAME}-out")
    )


def expected(seconds: int) -> Counter[Result]:
    """The windows of so many seconds."""
    return Counter(
        (f"s{partition}", start, 10, sum(range(start, start + 10)))
        for start in range(0, seconds, 10)
        for partition in (0, 1)
    )


def is_shown(medusa: Installation) -> bool:
    """Whether the status of the fragment has a gap."""
    found = medusa.catalog.statuses.get(network_id(NAME), COUNTS)
    return found is not None and found.gap_until_ms is not None


def test_the_results_of_a_gap_are_left_out_and_all_others_are_exact(
    medusa: Installation, nodes: dict[str, Child]
) -> None:
    """The owner is killed; the other node has no checkpoint, and begins at the newest readings."""
    medusa.deploy(WINDOWS.format(name=NAME) + "reliability: amnesia\n", SCHEMAS)
    medusa.await_state(NAME, COUNTS, LaneState.RUNNING)
    feed = Feed(medusa, NAME, is_late=False)
    feed.start()
    await_results(medusa, NAME, 20)
    kill(nodes[owner(medusa, NAME).node])
    medusa.wait_for(lambda: is_shown(medusa), "a gap in the status", within_s=WITHIN_S)
    medusa.await_state(NAME, COUNTS, LaneState.RUNNING, epoch=2)
    after = owner(medusa, NAME).node
    await_results(medusa, NAME, 20)
    feed.finish()
    seconds = feed.seconds // 10 * 10

    (gap,) = {one.gap for one in markers(medusa) if one.gap is not None}
    assert gap.since_ms is not None
    (event,) = gaps(medusa)
    facts = dict(event.facts)
    assert (event.node, facts["omitted"]) == (after, str(gap.offsets))
    assert facts["incarnation"] == gap.incarnation
    assert "it begins with an empty state" in log_of(medusa, after)

    def end_ms(result: Result) -> Millis:
        return Millis(1_000 * (BASE_S + result[1]) + WINDOW_MS)

    everything = expected(seconds)
    complete = Counter(
        {one: 1 for one in everything if end_ms(one) <= gap.since_ms or end_ms(one) > gap.until_ms}
    )
    there = complete.total()
    medusa.wait_for(lambda: results(medusa).total() >= there, "all results", within_s=WITHIN_S)
    assert results(medusa) == complete
    assert complete != everything
    medusa.wait_for(lambda: not is_shown(medusa), "that no gap is shown", within_s=WITHIN_S)
