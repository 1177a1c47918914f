"""A network whose input has one partition on each of two brokers, and what it has computed."""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.ids import FragmentId, FragmentName, TopicName
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from schemas import avro, codec, wire
from tests.faults.observe import Observer
from tests.system.outages.brokers import FIRST, SECOND, SecondBroker, create_topic
from tests.system.outages.feed import PARTITIONS, Feed
from tests.system.support import READING, Installation, network_id

_LOG = logging.getLogger(__name__)

NODE = "node_outages"
WITHIN_S = 120.0
WINDOW_MS = 1_000
IDLE_MS = 10_000
FRAGMENTS = ("kept", "counts")
_CLOSING_MS = 60_000
_DOCUMENT = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    idle_after: 10s
    partitions: 2
boxes:
  kept: {{filter: readings, where: value >= 0}}
  counts: {{aggregate: readings, window: 1s, by: [sensor], compute: {{n: count(*)}}}}
outputs: {{kept: {{topic: {name}-kept}}, counts: {{topic: {name}-counts}}}}
"""


@dataclass(frozen=True)
class Kept:
    """A result of the filter, and when it was seen (monotonic seconds)."""

    sensor: str
    value: int
    at_ms: int
    seen_s: float


class Network:
    """A deployed network, whose topics are on the first broker, except one partition of its input.

    Args:
        medusa: the installation.
        name: of the network.
        feed: of its input.
        observer: of its results and markers.
    """

    def __init__(self, medusa: Installation, name: str, feed: Feed, observer: Observer) -> None:
        self.medusa, self.name, self.feed = medusa, name, feed
        self.topic = TopicName(f"{name}-in")
        self._observer = observer
        self._kept: list[Kept] = []

    # --- results ------------------------------------------------------------------------------

    def kept(self) -> list[Kept]:
        """The results of the filter so far."""
        seen = self._observer.seen(TopicName(f"{self.name}-kept"))[len(self._kept) :]
        rows = self.medusa.decode([one.record.value for one in seen])
        self._kept += [
            Kept(row["sensor"], row["value"], _ms(row["at"]), one.at_s)
            for row, one in zip(rows, seen, strict=True)
        ]
        return self._kept

    def windows(self) -> Counter[tuple[str, int, int]]:
        """The windows so far, each with how often it was published: sensor, end, count."""
        seen = self._observer.seen(TopicName(f"{self.name}-counts"))
        rows = self.medusa.decode([one.record.value for one in seen])
        return Counter(
            (row["sensor"], one.record.timestamp_ms, row["n"])
            for row, one in zip(rows, seen, strict=True)
        )

    def last_kept(self, sensor: str) -> Kept | None:
        """The newest result of the filter of one sensor."""
        return max(
            (one for one in self.kept() if one.sensor == sensor),
            key=lambda one: one.at_ms,
            default=None,
        )

    def markers(self, fragment: str) -> list[tuple[CommitMarker, float]]:
        """The commit markers of a fragment so far, and when they were seen."""
        names = _names(self.name, fragment)
        return [
            (decode_marker(one.record.value, names.markers), one.at_s)
            for one in self._observer.seen(names.markers)
            if one.record.value is not None
        ]

    def log_pace(self, what: str, since_s: float) -> None:
        """Log how often batches of the filter have read partition 0 since a moment."""
        found = sorted(self.intervals(0, since_s, time.monotonic()))
        if found:
            middle = found[len(found) // 2]
            text = "%s %s: %d batches, %.2f s between two, at most %.2f s"
            _LOG.info(text, self.name, what, len(found), middle, found[-1])

    def intervals(self, partition: int, since_s: float, until_s: float) -> list[float]:
        """The seconds between batches of the filter that read a partition, within a time."""
        times, last = [], -1
        for marker, at_s in self.markers("kept"):
            (end,) = (o for at, o in marker.end.items() if at.partition == partition)
            if end > last:
                times.append(at_s)
            last = end
        times = [at_s for at_s in times if since_s <= at_s <= until_s]
        return [later - earlier for earlier, later in pairwise(times)]

    # --- waiting ------------------------------------------------------------------------------

    def await_flow(self, *partitions: int) -> None:
        """Wait until a reading that is sent from now on is a result, of each of these partitions.

        The readings of the others are not waited for.
        """
        now_ms = int(time.time() * 1000)
        for partition in partitions:
            self.await_kept(partition, now_ms)

    def await_kept(self, partition: int, from_ms: int, within_s: float = WITHIN_S) -> None:
        """Wait until a reading of a partition with this event time or a later one is a result."""

        def there() -> bool:
            last = self.last_kept(f"p{partition}")
            return last is not None and last.at_ms >= from_ms

        self.medusa.wait_for(there, f"partition {partition} is read", within_s=within_s)

    def await_unreachable(self, fragment: str, partition: int) -> FragmentStatus:
        """Wait until a running fragment's status names a partition that does not answer."""
        text = f"topic {self.topic}, partition {partition}, since "
        found: list[FragmentStatus] = []

        def there() -> bool:
            status = self.medusa.status(self.name, fragment)
            if status is None or not status.unreachable.startswith(text):
                return False
            found.append(status)
            return True

        self.medusa.wait_for(there, f"{fragment}: {text}", within_s=WITHIN_S)
        return found[0]

    def await_withdrawn(self) -> None:
        """Wait until the node has logged that a batch of one of the fragments is planned anew."""
        log = self.medusa.folder / "logs" / f"node-{NODE}.log"

        def there() -> bool:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            return any(f"[{self.name}." in line and "is planned anew" in line for line in lines)

        self.medusa.wait_for(there, "a batch is planned anew", within_s=WITHIN_S)

    def await_exact(self) -> None:
        """End the feed; wait until each result of all records of the input is there exactly once.

        Records that were not acknowledged are not in the input, so they do not count.
        """
        last_ms = self.feed.finish(_CLOSING_MS)
        readings = self._readings()
        values = Counter(reading["value"] for reading in readings)
        assert set(values.values()) == {1}
        per_window = Counter(
            (reading["sensor"], _ms(reading["at"]) // WINDOW_MS) for reading in readings
        )
        windows = {
            (sensor, (window + 1) * WINDOW_MS, count)
            for (sensor, window), count in per_window.items()
            if (window + 1) * WINDOW_MS <= last_ms - _CLOSING_MS // 2
        }

        def complete() -> bool:
            return len(self.kept()) >= len(readings) and windows <= self.windows().keys()

        self.medusa.wait_for(complete, "all results", within_s=WITHIN_S)
        assert Counter(one.value for one in self.kept()) == values
        found = self.windows()
        assert {one: number for one, number in found.items() if one in windows} == dict.fromkeys(
            windows, 1
        )
        assert all(end > last_ms - _CLOSING_MS // 2 for _, end, _ in found.keys() - windows)
        for fragment in FRAGMENTS:
            status = self.medusa.await_state(self.name, fragment, LaneState.RUNNING)
            assert (status.late_dropped, status.dead_letters) == (0, 0)

    def _readings(self) -> list[Any]:
        found: list[Any] = []

        def read() -> bool:
            found[:] = self.medusa.decoded(self.topic)
            return True

        self.medusa.wait_for(read, "the input is read", within_s=WITHIN_S)
        return found


@contextmanager
def network(medusa: Installation, second: SecondBroker, name: str) -> Iterator[Network]:
    """A running network that is fed; both of its fragments have results of both partitions."""
    document, schemas = _DOCUMENT.format(name=name), {"reading.avsc": READING}
    first = medusa.stack.kafka_bootstrap_servers
    observed: dict[TopicName, int] = {}
    for new in medusa.compared(document, schemas).changes.create_topics:
        leaders = (FIRST, SECOND) if new.external else (FIRST,) * new.partitions
        create_topic(first, new.name, leaders, dict(new.config))
        if not new.external:
            observed[new.name] = new.partitions
    medusa.deploy(document, schemas)
    for fragment in FRAGMENTS:
        medusa.await_state(name, fragment, LaneState.RUNNING)
    observer = Observer(first, observed)
    observer.start()
    text = json.dumps(READING)
    schema, schema_id = avro.parse(text), medusa.registry.register(f"{name}-in-value", text)

    def encoded(reading: dict[str, Any]) -> bytes:
        return wire.join(schema_id, codec.encode(schema, reading))

    try:
        with Feed(second.both, f"{name}-in", encoded) as feed:
            found = Network(medusa, name, feed, observer)
            found.await_flow(*PARTITIONS)
            medusa.wait_for(lambda: len(found.windows()) >= 4, "windows", within_s=WITHIN_S)
            yield found
    finally:
        observer.stop()


def _names(network: str, fragment: str) -> FragmentNames:
    return FragmentNames(FragmentId(network_id(network), FragmentName(fragment)))


def _ms(value: Any) -> int:
    """An event time as Avro decodes it: a number or a time."""
    return value if isinstance(value, int) else int(value.timestamp() * 1000)
