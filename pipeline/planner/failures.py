"""How many nodes and brokers may fail, and what that costs a fragment. Pure.

A record counts as written once `min.insync.replicas` replicas have it, as all writers here wait for
all that are in sync. If one less fails at once, and for good, a replica with the record remains.
More may fail if more are in sync, but nothing says that they were.

While fewer replicas than `min.insync.replicas` are in sync, a topic cannot be written: what writes
it waits, and loses nothing. A topic that is only read needs one replica.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.ids import TopicName
from pipeline.names import boundaries_topic
from pipeline.planner.plan import DerivedStream, Fragment, Plan

MIN_INSYNC = "min.insync.replicas"
MIN_INSYNC_DEFAULT = 1
"""That of Kafka, of topics that are not there yet."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replication of one topic.

    Args:
        topic: its name.
        number: of replicas.
        in_sync: so many have to be in sync, or it cannot be written.
        written: whether it is written, and not only read.
    """

    topic: TopicName
    number: int
    in_sync: int
    written: bool

    @property
    def without_loss(self) -> int:
        """How many brokers may fail for good at once without a loss."""
        return max(0, min(self.number, self.in_sync) - 1)

    @property
    def without_pause(self) -> int:
        """How many brokers may be away at once without a pause."""
        return max(0, self.number - (self.in_sync if self.written else 1))


@dataclass(frozen=True, slots=True)
class BrokerFailures:
    """How many brokers may fail at once.

    Args:
        without_loss: for good.
        without_pause: for some time.
        weakest: the topics that allow no more, in their order.
    """

    without_loss: int
    without_pause: int
    weakest: tuple[TopicName, ...]

    @property
    def words(self) -> str:
        """How many."""
        return f"{self.without_loss} without loss, {self.without_pause} without a pause"


def broker_failures(topics: Iterable[Replicas]) -> BrokerFailures | None:
    """How many brokers may fail so that all topics go on; None: there are none."""
    every = tuple(topics)
    if not every:
        return None
    loss, pause = min(t.without_loss for t in every), min(t.without_pause for t in every)
    weakest = (t.topic for t in every if t.without_loss == loss or t.without_pause == pause)
    return BrokerFailures(loss, pause, tuple(dict.fromkeys(weakest)))


def topics_of(fragment: Fragment) -> dict[TopicName, bool]:
    """The topics without which a fragment does not go on, each with whether it writes it."""
    read = [stream.topic for stream in fragment.inputs]
    derived = (stream for stream in fragment.inputs if isinstance(stream, DerivedStream))
    read += [boundaries_topic(stream.topic) for stream in derived]
    names, output = fragment.names, fragment.output.topic
    written = (output, boundaries_topic(output), names.dead_letters, names.markers)
    return {**dict.fromkeys(read, False), **dict.fromkeys(written, True)}


def planned_failures(fragment: Fragment, plan: Plan) -> BrokerFailures | None:
    """How many brokers may fail if the topics of a fragment are as they are planned."""
    known, needed = {topic.name: topic for topic in plan.topics}, topics_of(fragment)
    found = ((known[name], written) for name, written in needed.items() if name in known)
    return broker_failures(
        Replicas(
            topic.name,
            topic.replication,
            int(dict(topic.config).get(MIN_INSYNC, MIN_INSYNC_DEFAULT)),
            written,
        )
        for topic, written in found
    )


def node_failures(fragment: Fragment) -> int | None:
    """How many nodes may fail at once without building its state; None: it has none to build."""
    return fragment.reliability.secondaries if fragment.stateful_box is not None else None
