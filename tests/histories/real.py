"""A history on real servers: its steps, while nodes are started, killed and replaced."""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.producer import PlainProducer
from brokers.records import NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import Millis, NetworkId, NetworkName, TopicName
from schemas import avro, codec
from tests.faults.world import ANSWERS_WITHIN_S
from tests.faults.world import World as Around
from tests.histories import deploys
from tests.histories.chain import Chain, Outcome, Script
from tests.histories.documents import CHANGES, Stream, first, schema_of
from tests.histories.history import FIRST_DOCUMENTS
from tests.histories.node import OWNER
from tests.histories.reference import Wrong
from tests.histories.served import Served
from tests.histories.world import draw_record

DRAINS_WITHIN_S: Final = 20.0
PARTITIONS: Final = 2
PARTITIONS_MAX: Final = 4
ID_BITS: Final = 44
"""Bits of an id: sums of many ids differ, and none overflows."""
GROWN_WITHIN_S: Final = 20.0
_POLL_S = 0.3


class RealHistory(Chain):
    """The history of one network; several share servers and nodes.

    Args:
        script: its steps.
        around: servers, nodes, and clients of them.
        network: its unique name.
    """

    def __init__(self, script: Script, around: Around, network: str) -> None:
        rng = Random(script.seed)
        net = first(Random(rng.randrange(FIRST_DOCUMENTS)), network)
        self.served = Served(around, network)
        super().__init__(self.served, net, Outcome(script))
        self.served.watch, self.served.wrong = self.on_commit, self.wrong
        self._around = around

    # --- steps ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Deploy the first document, over topics with a few records."""
        with self._guarded():
            self.log(self.net.text)
            self.produce_plain()
            self.deploy(self.net, Random(self.outcome.script.seed))

    def step(self, number: int) -> None:
        """Execute a step, if it exists, and check all commits so far."""
        steps = self.outcome.script.steps
        if number >= len(steps) or self.outcome.wrong:
            return
        step = steps[number]
        self.log(f"{step}")
        rng = Random(step.seed)
        with self._guarded():
            if step.kind in CHANGES:
                self.change(step.kind, rng)
            else:
                STEPS[step.kind](self, rng)
            self.served.look()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Record any exception as a finding."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the other histories continue
            self.log(traceback.format_exc())
            self.wrong(Wrong("broke", "", f"{type(error).__name__}: {error}"))

    def produce_plain(self) -> None:
        """Send a valid record to each stream: an empty stream has no event time."""
        self.produce([(stream, True) for stream in self.net.streams], Random(self.net.name))

    def produce(self, records: Iterable[tuple[Stream, bool]], rng: Random) -> None:
        """Send a record to each of some streams; `True`: a valid one in time.

        Missing topics are created. A producer caches the number of partitions of a topic, so each
        call creates one.
        """
        bootstrap = self._around.stack.kafka_bootstrap_servers
        producer = PlainProducer(bootstrap, ANSWERS_WITHIN_S)
        try:
            for stream, plain in records:
                topic = TopicName(self.net.placed(stream.topic))
                partition = rng.randrange(self.partitions(topic))
                now_ms = Millis(time.time_ns() // 1_000_000)
                value = self._drawn(stream, rng, now_ms, plain=plain)
                producer.send(topic, None, value, timestamp_ms=now_ms, partition=partition)
            producer.flush(ANSWERS_WITHIN_S)
        finally:
            producer.close()

    def _drawn(self, stream: Stream, rng: Random, now_ms: int, *, plain: bool) -> bytes:
        """The value of a record."""
        text = schema_of(stream.kind)
        subject = f"{self.net.placed(stream.topic)}-value"
        schema = self._around.registry.register(subject, text)
        drawn = draw_record(rng, now_ms, rng.getrandbits(ID_BITS), plain=plain)
        return drawn.framed(schema, codec.encode(avro.parse(text), dict(drawn.values)))

    def partitions(self, topic: TopicName) -> int:
        """The number of a topic's partitions; a missing topic is created."""
        described = self._around.admin.describe((topic,))
        if topic not in described:
            self._around.admin.create_topics((NewTopicSpec(topic, PARTITIONS, 1),))
            return PARTITIONS
        return described[topic].partitions

    # --- the end ----------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether all is read and published, or the history has failed."""
        with self._guarded():
            self.served.look()
        return bool(self.outcome.wrong) or not list(self.open())

    def failed(self) -> Mapping[str, str]:
        """The stopped lanes with their errors."""
        statuses = self.served.servers.catalog.statuses.of(
            NetworkId(OWNER, NetworkName(self.net.name))
        )
        there = {str(name) for name, _ in self.open()}
        return {
            str(status.fragment): status.last_error
            for status in statuses
            if status.state is LaneState.FAILED and str(status.fragment) in there
        }

    def give_up(self) -> None:
        """Report all missing results as lost."""
        for fragment, text in self.open():
            self.wrong(Wrong("stuck", fragment, text))


# --- steps ----------------------------------------------------------------------------------------


def _produce(history: RealHistory, rng: Random) -> None:
    streams = [rng.choice(history.net.streams) for _ in range(rng.randint(1, 8))]
    history.produce([(stream, False) for stream in streams], rng)


def _drain(history: RealHistory, rng: Random) -> None:
    """Until all is read, if it is soon."""
    del rng
    ends_s = time.monotonic() + DRAINS_WITHIN_S
    while time.monotonic() < ends_s:
        history.served.look()
        if not any(ledger.unread() for ledger in history.ledgers.values()):
            return
        time.sleep(_POLL_S)


def _rollback(history: RealHistory, rng: Random) -> None:
    history.deploy(rng.choice(history.nets), rng)


def _destroy(history: RealHistory, rng: Random) -> None:
    """Destroy and deploy again, the same or an earlier document."""
    history.served.look()
    refusal = deploys.destroy(history.served, history.net)
    history.log(f"  destroy: {refusal or 'done'}")
    if not refusal:
        history.deploy(rng.choice(history.nets[-3:]), rng)


def _made_again(history: RealHistory, rng: Random) -> None:
    """An external topic is deleted and created again."""
    topic = TopicName(history.net.placed(rng.choice(history.net.streams).topic))
    history.served.look()
    admin = history._around.admin
    admin.delete_topics((topic,))
    admin.create_topics((NewTopicSpec(topic, PARTITIONS, 1),))
    history.excuses.add("made again")
    history.log(f"  {topic}")


def _grown(history: RealHistory, rng: Random) -> None:
    """An external topic gets one more partition, and records in it."""
    stream = rng.choice(history.net.streams)
    topic = TopicName(history.net.placed(stream.topic))
    partitions = history.partitions(topic)
    if partitions >= PARTITIONS_MAX:
        return
    client = AdminClient({"bootstrap.servers": history._around.stack.kafka_bootstrap_servers})
    (grown,) = client.create_partitions([NewPartitions(topic, partitions + 1)]).values()
    grown.result(GROWN_WITHIN_S)
    history.produce([(stream, True)] * 4, rng)


STEPS: Mapping[str, Callable[[RealHistory, Random], None]] = {
    "produce": _produce,
    "drain": _drain,
    "rollback": _rollback,
    "destroy": _destroy,
    "made_again": _made_again,
    "grown": _grown,
}
