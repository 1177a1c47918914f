"""What the agent hears of the world: threads that look again and again and tell what they saw.

Each is one small loop with a pause; an unreachable server is told as such and asked again.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from brokers.kafka.admin import Describing
from brokers.kafka.reader import BEGINNING
from brokers.records import Ends, KafkaRecord
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput
from pipeline.brain.events import (
    ActivityRead,
    BoundariesWatched,
    BoundaryRead,
    CatalogLost,
    CatalogRead,
    Desired,
    EndsRead,
    Event,
)
from pipeline.brain.plans import Assigned, Plans
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock, steady_ms
from pipeline.errors import (
    BrokenInvariantError,
    InputError,
    MedusaError,
    NewerFormatError,
    UnavailableError,
)
from pipeline.ids import NetworkLife, NetworkVersion, NodeId, TopicName
from pipeline.lanes import codec
from pipeline.lanes.events import FragmentId as Id
from pipeline.lanes.signals import is_activity
from pipeline.names import boundaries_topic
from pipeline.planner.plan import Fragment

CATALOG_PAUSE_S = 0.1
CATALOG_FULL_S = 5.0
"""Also without a change of networks or nodes the catalog is read in full this often."""
ENDS_PAUSE_S = 0.25
ENGINE_PAUSE_S = 0.5
PRACTICE_AFTER_S = 1.0
REHEARSAL_PAUSE_S = 10.0
WARM_PAUSE_S = 3_600.0
BOUNDARY_POLL_S = 0.5
DESCRIBE_PAUSE_S = 1.0

_log = logging.getLogger(__name__)
Tell = Callable[[Event], None]


class Poll(Protocol):
    """One look at the world."""

    def look(self) -> float:
        """Look, tell, and say how many seconds to pause."""


class Warming(Protocol):
    """As in `pipeline/spark/warm_up.py`."""

    @property
    def over(self) -> bool:
        """Whether there is to be no more of it."""

    def practise(self) -> None:
        """Run queries of every shape on made-up records."""

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Run a fragment's own query on the latest records; whether there were any."""


class EndOffsets(Protocol):
    """As in `brokers/kafka/admin.py`."""

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """The last stable offsets of topics, and the next offsets to be written."""


class Describer(Protocol):
    """As in `brokers/kafka/admin.py`."""

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """Ask what is known of topics; does not wait."""

    def end_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """Where each partition ends."""


class BoundaryReader(Protocol):
    """As `TopicReader` in `brokers/kafka/reader.py`."""

    def assign(self, starts: Ends) -> None:
        """Read these partitions from these offsets, and no others."""

    def poll(self, timeout_s: float) -> tuple[KafkaRecord, ...]:
        """What has come; waits at most `timeout_s` for the first record."""

    def close(self) -> None:
        """Drop the connection."""


class Ending:
    """Why a node has to end by itself, if it has to.

    Args:
        stop: set when there is a reason.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._why: MedusaError | None = None

    def because(self, error: MedusaError) -> None:
        """End the node; the first reason counts."""
        if self._why is None:
            _log.error("the node ends: %s", error)
            self._why = error
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether the node ends, for whatever reason."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self._why is not None:
            raise self._why


def start(poll: Poll, name: str, stop: threading.Event, ending: Ending) -> threading.Thread:
    """Run a poll on a thread of its own until `stop` is set.

    What a newer version of Medusa wrote ends the node: what it cannot read it must not pass over.
    """

    def loop() -> None:
        while not stop.is_set():
            try:
                pause_s = poll.look()
            except NewerFormatError as error:
                ending.because(error)
                return
            except MedusaError as error:
                _log.debug("%s: %s", name, error)
                pause_s = 1.0
            stop.wait(pause_s)

    thread = threading.Thread(target=loop, name=name, daemon=True)
    thread.start()
    return thread


class EnginePoll:
    """Watches the engine that all lanes run in; when it cannot run any, the node has to end.

    Args:
        trouble: tells why it cannot; None as long as it can.
        ending: of the node.
    """

    def __init__(self, trouble: Callable[[], MedusaError | None], ending: Ending) -> None:
        self._trouble = trouble
        self._ending = ending

    def look(self) -> float:
        """End the node if the engine is of no use; once the node was stopped, that is no loss."""
        trouble = self._trouble()
        if trouble is not None and not self._ending.stopped:
            self._ending.because(trouble)
        return ENGINE_PAUSE_S


class WarmUpPoll:
    """Warms the engine up while the node has nothing to do yet."""

    def __init__(self, warm_up: Warming, plans: Plans) -> None:
        self._warm_up = warm_up
        self._plans = plans
        self._looks = 0
        self._done: set[tuple[Id, NetworkLife, NetworkVersion]] = set()

    def look(self) -> float:
        """Practise at the second look: what runs on the node from the start is known by then.

        After that, rehearse what other nodes run; again when it has changed.
        """
        if self._warm_up.over:
            return WARM_PAUSE_S
        self._looks += 1
        if self._looks == 1:
            return PRACTICE_AFTER_S
        if self._looks == 2:  # noqa: PLR2004 - said above
            self._warm_up.practise()
        self._rehearse()
        return REHEARSAL_PAUSE_S

    def _rehearse(self) -> None:
        elsewhere = {
            (one.fragment, one.network.life, one.record.version): one
            for one in self._plans.elsewhere()
        }
        self._done &= elsewhere.keys()
        for key in sorted(elsewhere.keys() - self._done):
            one = elsewhere[key]
            try:
                plan = self._plans.fragment(one)
            except (InputError, BrokenInvariantError) as error:
                _log.info("not rehearsed: %s", error)
                self._done.add(key)
                continue
            if self._warm_up.rehearse(plan, one.topic_ids):
                self._done.add(key)


class CatalogPoll:
    """Reads what should run on this node, and keeps the node registered.

    A fragment of a network of the node's participant is this node's when it owns it, or when nobody
    that is alive does.
    """

    def __init__(
        self, catalog: Catalog, plans: Plans, record: NodeRecord, clock: Clock, tell: Tell
    ) -> None:
        self._catalog = catalog
        self._plans = plans
        self._record = record
        self._session = catalog.session
        self._clock = clock
        self._tell = tell
        self._seen: tuple[int, tuple[NodeId, ...]] | None = None
        self._read_at_s = 0.0

    def look(self) -> float:
        """Tell what is desired here, if the catalog changed or it was long ago."""
        if self._catalog.suspended:
            self._lost()
            return CATALOG_PAUSE_S
        now_s = self._clock.monotonic_s()
        try:
            if self._catalog.session != self._session:
                session = self._catalog.session
                self._catalog.register_node(self._record)
                self._session = session
            there = self._catalog.revision(), self._catalog.node_names()
            if there != self._seen or now_s - self._read_at_s > CATALOG_FULL_S:
                desired = self._desired()
                self._tell(CatalogRead(desired))
                self._seen, self._read_at_s = there, now_s
        except MedusaError:
            self._lost()
            raise
        return CATALOG_PAUSE_S

    def _lost(self) -> None:
        if self._seen is not None:
            _log.warning("the catalog cannot be reached; running lanes go on")
            self._tell(CatalogLost())
            self._seen = None

    def _desired(self) -> tuple[Desired, ...]:
        self._catalog.format()  # refuses a catalog that was raised beyond this version meanwhile
        alive = {record.node for record in self._catalog.nodes()}
        here, elsewhere = [], []
        for network in self._catalog.networks():
            if network.owner != self._record.participant:
                continue
            for record in self._catalog.fragments(network.network):
                owner = self._catalog.owner(record.network, record.fragment)
                one = Assigned(network, record)
                if owner is None or owner.node == self._record.node or owner.node not in alive:
                    here.append(one)
                elif one.running:
                    elsewhere.append(one)
        self._plans.assign(here, elsewhere)
        return tuple(one.desired for one in here)


class EndsPoll:
    """Asks where the inputs of this node's fragments end; also how we know that Kafka is there."""

    def __init__(self, admin: EndOffsets, plans: Plans, clock: Clock, tell: Tell) -> None:
        self._admin = admin
        self._plans = plans
        self._clock = clock
        self._tell = tell

    def look(self) -> float:
        """Tell the ends; none at all when Kafka does not answer."""
        topics = self._plans.input_topics()
        if topics:
            asked_at_ms = steady_ms(self._clock)
            try:
                stable, written = self._admin.both_ends(topics)
            except MedusaError as error:
                _log.warning("Kafka cannot be reached: %s", error.message)
                stable, written = {}, {}
            self._tell(EndsRead(asked_at_ms, stable, written))
        return ENDS_PAUSE_S


class BoundaryPoll:
    """Reads the boundaries of derived inputs, from their beginning: the topics are compacted.

    Their topics are described about once a second. When one was deleted or created again, when the
    inputs of this node have changed, and after every error, all are read from the beginning again:
    a boundary that is read twice changes nothing. What a writer has said of its activity counts
    only behind the end that a topic had when reading it began: it says something of the present.

    Args:
        admin: describes topics.
        open_reader: opens a reader of committed records.
        plans: which inputs there are.
        clock: for the pause between two descriptions.
        tell: receives `BoundariesWatched` and `BoundaryRead`.
    """

    def __init__(
        self,
        admin: Describer,
        open_reader: Callable[[], BoundaryReader],
        plans: Plans,
        clock: Clock,
        tell: Tell,
    ) -> None:
        self._admin = admin
        self._open_reader = open_reader
        self._plans = plans
        self._clock = clock
        self._tell = tell
        self._inputs: frozenset[DerivedInput] = frozenset()
        self._reader: BoundaryReader | None = None
        self._ids: Mapping[TopicName, str] = {}
        self._present: Ends = {}
        self._asked: Describing | None = None
        self._answered_at_s = 0.0

    def look(self) -> float:
        """Tell the boundaries that came; waits for some, so that no pause is needed."""
        inputs = self._plans.derived_inputs()
        if inputs != self._inputs:
            self._close()
            self._inputs = inputs
            self._tell(BoundariesWatched(frozenset(writer_of(one) for one in inputs)))
        if not inputs:
            return BOUNDARY_POLL_S
        try:
            self._follow_topics()
            records = self._reader.poll(BOUNDARY_POLL_S) if self._reader else ()
        except MedusaError:
            self._close()  # what was fetched together with the error is read again
            raise
        for record in records:
            self._take(record)
        return 0.0 if self._reader else BOUNDARY_POLL_S

    def _follow_topics(self) -> None:
        """Read the topics that there are; waits for Kafka's answer only as long as none is read."""
        if self._asked is None:
            if self._reader and self._clock.monotonic_s() - self._answered_at_s < DESCRIBE_PAUSE_S:
                return
            topics = sorted({boundaries_topic(one.topic) for one in self._inputs})
            self._asked = self._admin.begin_describing(topics)
        if self._reader and not self._asked.done():
            return
        asked, self._asked = self._asked, None
        self._answered_at_s = self._clock.monotonic_s()
        try:
            found = asked.result()
        except UnavailableError:
            if self._reader:  # it notices, too, and goes on when Kafka is back
                return
            raise
        ids = {topic: described.topic_id for topic, described in found.items()}
        if ids == self._ids:
            return
        self._close()
        if ids:
            self._present = self._admin.end_offsets(ids)
            self._reader = self._open_reader()
            self._reader.assign({topic: {0: BEGINNING} for topic in ids})
        self._ids = ids

    def _close(self) -> None:
        reader, self._reader, self._ids, self._asked = self._reader, None, {}, None
        if reader is not None:
            reader.close()

    def _is_present(self, record: KafkaRecord) -> bool:
        """Whether it was written since reading began; where nobody could say, all of it counts."""
        return record.offset >= self._present.get(record.topic, {}).get(record.partition, 0)

    def _take(self, record: KafkaRecord) -> None:
        """Tell a boundary; what is none, since somebody else wrote it, is passed over."""
        if record.value is None:
            return
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            if is_activity(record.key):
                if not self._is_present(record):
                    return
                said = codec.decode_activity(record.value, place)
                self._tell(ActivityRead((said.topic_id, said.writer), said.epoch, said.idle))
                return
            read = codec.decode_boundary(record.value, place)
        except BrokenInvariantError as error:
            _log.warning("a record that is no boundary is passed over: %s", error)
            return
        writer = read.topic_id, read.writer
        self._tell(BoundaryRead(writer, read.epoch, read.boundary_ms, read.positions))
