"""An internal topic that is kept by need, while its reader loses everything but the log."""

import shutil
from collections.abc import Iterator, Mapping

import pytest

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import BoxName, FragmentName, Offset
from pipeline.names import derived_topic
from tests.system.nodes.feeds import COUNTS, SCHEMAS, Feed, await_results, await_windows
from tests.system.support import WINDOWS, Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

NAME = "needed"
WRITER, READER = "need_writer", "need_reader"
PASSED, LATER = BoxName("passed"), FragmentName("later")
WITHIN_S = 180.0
DOCUMENT = (
    WINDOWS.format(name=NAME)
    .replace("aggregate: readings", "aggregate: passed")
    .replace(
        "boxes:\n",
        "boxes:\n"
        "  passed: {filter: readings, where: value >= 0, placement: {nodes: role=writer}}\n",
    )
    + "partitions: 2\ninternal_retention: needed\nplacement: {nodes: role=reader}\n"
)
WITH_ANOTHER = DOCUMENT.replace(
    "  counts:\n", "  later: {aggregate: passed, window: 10s, compute: {n: count(*)}}\n  counts:\n"
)
TOPIC = derived_topic(network_id(NAME), PASSED)

Nodes = dict[str, Child]


def started(medusa: Installation, name: str) -> Child:
    """Start a node with a role, and checkpoints of its own."""
    checkpoints = str(medusa.folder / f"checkpoints-{name}")
    return medusa.start_node(name, {"labels": f"role={name[5:]}", "checkpoints": checkpoints})


@pytest.fixture
def nodes(medusa: Installation) -> Iterator[Nodes]:
    """A node for the writer, and one for its readers."""
    processes = {name: started(medusa, name) for name in (WRITER, READER)}
    try:
        for name, process in processes.items():
            medusa.await_node(name, process)
        yield processes
    finally:
        for process in processes.values():
            kill(process)


def starts(medusa: Installation) -> Mapping[int, Offset]:
    """The oldest offsets of the topic."""
    return medusa.servers.topics.start_offsets((TOPIC,))[TOPIC]


def needs(medusa: Installation) -> Mapping[int, Offset]:
    """What a start of the reader may read, by its last marker."""
    marker = medusa.marker(NAME, COUNTS)
    return {
        at.partition: min(offset, marker.start[at])
        for at, offset in marker.needed.items()
        if at.topic == TOPIC
    }


def test_a_reader_rebuilds_from_what_is_left(medusa: Installation, nodes: Nodes) -> None:
    """The log then begins with the oldest record that its state needs; the results are exact.

    A reader that is deployed later begins at what is left, and is waited for from then on.
    """
    medusa.deploy(DOCUMENT, SCHEMAS)
    medusa.await_state(NAME, COUNTS, LaneState.RUNNING)
    feed = Feed(medusa, NAME, is_late=False)
    feed.start()
    await_results(medusa, NAME, 10, WITHIN_S)
    medusa.wait_for(lambda: min(starts(medusa).values()) > 0, "records removed", within_s=WITHIN_S)

    kill(nodes[READER])
    shutil.rmtree(medusa.folder / f"checkpoints-{READER}")
    needed = needs(medusa)
    medusa.wait_for(lambda: starts(medusa) == needed, "all but the needed", within_s=WITHIN_S)
    assert min(needed.values()) < max(medusa.marker(NAME, COUNTS).end.values())
    (trim,) = medusa.catalog.trims.of(network_id(NAME).participant)
    assert (trim.topic, dict(trim.before), trim.held) == (TOPIC, needed, "")
    nodes[READER] = started(medusa, READER)
    medusa.await_state(NAME, COUNTS, LaneState.RUNNING, epoch=2)
    assert medusa.marker(NAME, COUNTS).incarnation.startswith("2-")
    await_results(medusa, NAME, 6, WITHIN_S)

    medusa.deploy(WITH_ANOTHER, SCHEMAS)
    medusa.await_state(NAME, LATER, LaneState.RUNNING)
    begun = starts(medusa)
    medusa.wait_for(
        lambda: all(at > begun[partition] for partition, at in starts(medusa).items()),
        "more records removed",
        within_s=WITHIN_S,
    )
    feed.finish()
    await_windows(medusa, NAME, feed.seconds // 10 * 10, WITHIN_S)
    medusa.await_state(NAME, LATER, LaneState.RUNNING)
