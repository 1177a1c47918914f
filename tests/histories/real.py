"""A history on real servers: its steps, taken while nodes run, die and take over."""

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.producer import PlainProducer
from brokers.records import NewTopicSpec
from pipeline.catalog.records import LaneState
from pipeline.ids import Millis, NetworkName, TopicName
from schemas import avro, codec
from tests.faults.world import World as Around
from tests.histories import deploys
from tests.histories.chain import Chain, Outcome, Script
from tests.histories.documents import CHANGES, Stream, first, schema_of
from tests.histories.reference import Wrong
from tests.histories.served import Served
from tests.histories.world import draw_record

FIRST_DOCUMENTS: Final = 400
DRAINS_WITHIN_S: Final = 20.0
PARTITIONS: Final = 2
PARTITIONS_MAX: Final = 4
ID_BITS: Final = 44
"""Sums of many ids differ, and none overflows."""
GROWN_WITHIN_S: Final = 20.0
_POLL_S = 0.3


class RealHistory(Chain):
    """One network, driven step by step; many of them share servers and nodes.

    Args:
        script: what is to happen.
        around: servers, nodes, and clients of them.
        producer: into external topics.
        network: its name, which no other one has.
    """

    def __init__(
        self, script: Script, around: Around, producer: PlainProducer, network: str
    ) -> None:
        rng = Random(script.seed)
        net = first(Random(rng.randrange(FIRST_DOCUMENTS)), network)
        self.served = Served(around, network)
        super().__init__(self.served, net, Outcome(script))
        self.served.watch, self.served.wrong = self.hear, self.wrong
        self._around, self._producer = around, producer

    # --- steps ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Deploy the first document, over topics that hold a little."""
        rng = Random(self.outcome.script.seed)
        self.say(self.net.text)
        self.produce_plain(rng)
        self.deploy(self.net, rng)

    def step(self, number: int) -> None:
        """Take a step, if there are so many, and judge what was committed until then."""
        steps = self.outcome.script.steps
        if number < len(steps) and not self.outcome.wrong:
            step = steps[number]
            self.say(f"{step}")
            rng = Random(step.seed)
            if step.kind in CHANGES:
                self.change(step.kind, rng)
            else:
                STEPS[step.kind](self, rng)
            self.served.look()

    def produce_plain(self, rng: Random) -> None:
        """A good record into each stream: one without any has no event time."""
        for stream in self.net.streams:
            self.produce(stream, rng, plain=True)
        self._producer.flush(GROWN_WITHIN_S)

    def produce(self, stream: Stream, rng: Random, *, plain: bool = False) -> None:
        """Send one record; the topic is made if it does not exist."""
        topic = TopicName(self.net.placed(stream.topic))
        partitions = self._partitions(topic)
        now_ms = time.time_ns() // 1_000_000
        text = schema_of(stream.kind)
        schema = self._around.registry.register(f"{topic}-value", text)
        drawn = draw_record(rng, now_ms, rng.getrandbits(ID_BITS), plain=plain)
        value = drawn.framed(schema, codec.encode(avro.parse(text), dict(drawn.values)))
        partition = rng.randrange(partitions)
        self._producer.send(topic, None, value, timestamp_ms=Millis(now_ms), partition=partition)

    def _partitions(self, topic: TopicName) -> int:
        described = self._around.admin.describe((topic,))
        if topic not in described:
            self._around.admin.create_topics((NewTopicSpec(topic, PARTITIONS, 1),))
            return PARTITIONS
        return described[topic].partitions

    # --- the end ----------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether all is read and published, or something is wrong."""
        self.served.look()
        return bool(self.outcome.wrong) or not list(self.open())

    def failed(self) -> Mapping[str, str]:
        """The lanes that have stopped, and what they say."""
        statuses = self.served.servers.catalog.statuses(NetworkName(self.net.name))
        there = {str(name) for name, _ in self.open()}
        return {
            str(status.fragment): status.last_error
            for status in statuses
            if status.state is LaneState.FAILED and str(status.fragment) in there
        }

    def give_up(self) -> None:
        """What is still to come will not: it is lost."""
        for fragment, text in self.open():
            self.wrong(Wrong("stuck", fragment, text))


# --- steps ----------------------------------------------------------------------------------------


def _produce(history: RealHistory, rng: Random) -> None:
    for _ in range(rng.randint(1, 8)):
        history.produce(rng.choice(history.net.streams), rng)
    history._producer.flush(GROWN_WITHIN_S)


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
    told = deploys.destroy(history.served, history.net)
    history.say(f"  destroy: {told or 'done'}")
    if not told:
        history.deploy(rng.choice(history.nets[-3:]), rng)


def _made_again(history: RealHistory, rng: Random) -> None:
    """An external topic is deleted and created again."""
    topic = TopicName(history.net.placed(rng.choice(history.net.streams).topic))
    history.served.look()
    admin = history._around.admin
    admin.delete_topics((topic,))
    admin.create_topics((NewTopicSpec(topic, PARTITIONS, 1),))
    history.excuses.add("made again")
    history.say(f"  {topic}")


def _grown(history: RealHistory, rng: Random) -> None:
    """An external topic gets a partition more, and records in it."""
    stream = rng.choice(history.net.streams)
    topic = TopicName(history.net.placed(stream.topic))
    partitions = history._partitions(topic)
    if partitions >= PARTITIONS_MAX:
        return
    client = AdminClient({"bootstrap.servers": history._around.stack.kafka_bootstrap_servers})
    (grown,) = client.create_partitions([NewPartitions(topic, partitions + 1)]).values()
    grown.result(GROWN_WITHIN_S)
    for _ in range(4):
        history.produce(stream, rng, plain=True)
    history._producer.flush(GROWN_WITHIN_S)


STEPS: Mapping[str, Callable[[RealHistory, Random], None]] = {
    "produce": _produce,
    "drain": _drain,
    "rollback": _rollback,
    "destroy": _destroy,
    "made_again": _made_again,
    "grown": _grown,
}
