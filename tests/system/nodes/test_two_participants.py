"""Two participants with the same network name on one stack; one destroys its network."""

import time
from collections import Counter

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.remove import doomed
from pipeline.errors import RefusedError
from pipeline.ids import FragmentId, FragmentName, ParticipantId
from pipeline.names import FragmentNames, checkpoint_folder
from tests.system.support import OWNER, READING, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

NAME = "twins"
OTHERS = ParticipantId("others")
COUNTS = FragmentName("counts")
SCHEMAS = {"reading.avsc": READING}
DOCUMENT = """
network: twins
streams:
  readings:
    topic: twins-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 1
boxes:
  counts: {aggregate: readings, window: 10s, by: [sensor], compute: {n: count(*)}}
"""
"""The document does not name the output topic, so each participant has its own."""
BASE = (int(time.time()) - 3_600) // 10 * 10_000
"""An hour ago, at the start of a window."""
WITHIN_S = 120.0


def names(owner: ParticipantId) -> FragmentNames:
    """The fragment's names of a participant."""
    return FragmentNames(FragmentId(network_id(NAME, owner), COUNTS))


def send(medusa: Installation, numbers: range) -> None:
    """Send one reading for each second."""
    for number in numbers:
        reading = {"sensor": "a", "value": number, "at": BASE + number * 1_000}
        medusa.send("twins-in", medusa.encoded("twins-in-value", READING, reading), partition=0)
    medusa.producer.flush(10)


def expected(count: int) -> Counter[tuple[int, int]]:
    """Expected windows after so many readings: end and count."""
    promise_ms = BASE + (count - 1) * 1_000 - 1_000
    ends = Counter(BASE + number * 1_000 // 10_000 * 10_000 + 10_000 for number in range(count))
    return Counter((end, n) for end, n in ends.items() if end <= promise_ms)


def published(medusa: Installation, owner: ParticipantId) -> Counter[tuple[int, int]]:
    """Published windows of a participant, with their multiplicity."""
    rows = medusa.decoded(f"{owner}.{NAME}.{COUNTS}")
    return Counter((round(row["window_end"].timestamp() * 1_000), row["n"]) for row in rows)


def await_published(medusa: Installation, owner: ParticipantId, count: int) -> None:
    """Wait for the windows of so many readings, then compare them."""
    medusa.wait_for(
        lambda: published(medusa, owner).total() >= expected(count).total(),
        f"the windows of {owner}",
        within_s=WITHIN_S,
    )
    assert published(medusa, owner) == expected(count)


def await_running(medusa: Installation, owner: ParticipantId, node: str) -> None:
    """Wait until the node of a participant runs its fragment."""

    def running() -> bool:
        status = medusa.catalog.statuses.get(network_id(NAME, owner), COUNTS)
        return status is not None and status.state is LaneState.RUNNING and status.node == node

    medusa.wait_for(running, f"{node} runs it", within_s=WITHIN_S)


def test_a_destroy_does_not_affect_the_same_network_of_another_participant(
    medusa: Installation,
) -> None:
    """Each publishes all windows into its own topic, before and after the other's destroy.

    Their nodes also share a checkpoint folder.
    """
    shared = medusa.folder / "checkpoints"
    with medusa.node("ours"), medusa.node("theirs", {"participant": OTHERS}):
        for owner, node in ((OWNER, "ours"), (OTHERS, "theirs")):
            medusa.deploy(DOCUMENT, SCHEMAS, owner=owner)
            await_running(medusa, owner, node)
        send(medusa, range(40))
        for owner in (OWNER, OTHERS):
            await_published(medusa, owner, 40)
            assert (shared / checkpoint_folder(network_id(NAME, owner))).is_dir()

        medusa.destroy(NAME)
        left = set(medusa.admin.topic_names())
        assert not {topic for topic in left if topic.startswith(f"{OWNER}.{NAME}.")}
        assert {names(OTHERS).markers, names(OTHERS).dead_letters, "twins-in"} <= left
        assert not (shared / checkpoint_folder(network_id(NAME))).exists()
        assert (shared / checkpoint_folder(network_id(NAME, OTHERS))).is_dir()
        with pytest.raises(RefusedError, match="not deployed"):
            doomed(network_id(NAME), medusa.servers)

        before = medusa.catalog.statuses.get(network_id(NAME, OTHERS), COUNTS)
        send(medusa, range(40, 80))
        await_published(medusa, OTHERS, 80)
        after = medusa.catalog.statuses.get(network_id(NAME, OTHERS), COUNTS)
        assert before is not None
        assert after is not None
        assert (after.epoch, after.restarts) == (before.epoch, 0)
        assert medusa.records(names(OTHERS).dead_letters) == []
        medusa.destroy(NAME, owner=OTHERS)
        assert not {t for t in medusa.admin.topic_names() if t.startswith(f"{OTHERS}.{NAME}.")}
