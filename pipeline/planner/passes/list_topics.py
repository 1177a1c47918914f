"""Pass: list every topic that the network needs, at its start or later.

How the settings were chosen:

- All inputs of a lane have the same retention, unless declared otherwise. A lane that was stopped
  over a weekend continues from its positions in all of its inputs; one input that has deleted them
  would stop it permanently. So records sent again, which keep their timestamps, are kept as long as
  the input with the longest retention.
- Kafka computes retention of a derived topic from its records' timestamps, which are event times.
  Derived topics keep the timestamps that lanes write (CreateTime), whatever the broker's default.
- Since Kafka 4 a broker rejects timestamps more than an hour ahead of its clock. Event time may be
  ahead (by `ahead` of a stream), so derived topics allow any timestamp.
- A dead letter is kept from its arrival, however old its record is: the broker stamps it, and the
  record's own timestamp is in a header.
- The topic of a stream that only fragments of the network read may be kept by need: then it has no
  limit of age or size either, and its writer deletes what no fragment needs.
- A rebuild needs dead letters by position, and Kafka can only expire them by age or size. So their
  topic has neither limit; the lane deletes those that are old and not needed.
- The broker also stamps a lane's internal records (markers, boundaries): otherwise a node
  with a wrong clock could not write them, or they would be deleted too early.
- A record sent again keeps its timestamp (CreateTime), and its input topic may allow any. Most
  fragments never get one, so its topic is created when needed.
- Topics of which only the newest record per key counts (boundaries, markers) are compacted, in the
  smallest segments that a broker allows, since only closed segments are compacted.
- A follower needs each marker since the state that it builds. So they are not compacted for some
  minutes: longer than the time that a move has.
- Results and dead letters may contain records of a topic that allows more than Kafka's default of
  1 MB a record. So the topics that lanes write allow more as well.
- Tentative results are settled soon after the missing input is back. So their topic keeps them for
  a day, or for as long as the results themselves if that is less.
- With three or more replicas two must have a record before it counts as written.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from pipeline import durations
from pipeline.ids import StreamName, TopicName
from pipeline.names import boundaries_topic
from pipeline.network.model import ExternalStream, Network
from pipeline.planner.draft import Draft, outputs_of
from pipeline.planner.existing_topics import MIN_COMPACTION_LAG_MS
from pipeline.planner.plan import Fragment, FragmentInput, NewTopic

SEGMENT_BYTES = 1_048_576
"""The least that Kafka 4 accepts."""
ANY_TIMESTAMP = 9_223_372_036_854_775_807
RECORD_BYTES = 8_388_608
"""Eight times Kafka's default; many hosted clusters do not allow more."""
SAFE_REPLICAS = 3

MARKERS_KEPT_MS = durations.parse("10m")
"""Ten batches a second for so long are about 10 MB of markers."""
TENTATIVE_RETENTION_MS = durations.parse("1d")
"""A tentative result counts until the stable ones of its time are there."""

Config = tuple[tuple[str, str], ...]

_LARGE: Config = (("max.message.bytes", str(RECORD_BYTES)),)
_OWN_TIME: Config = (
    ("message.timestamp.after.max.ms", str(ANY_TIMESTAMP)),
    ("message.timestamp.type", "CreateTime"),
)
_STAMPED: Config = (("message.timestamp.type", "LogAppendTime"),)
_UNLIMITED: Config = (("retention.bytes", "-1"), ("retention.ms", "-1"))
_SMALL: Config = (("segment.bytes", str(SEGMENT_BYTES)),)
_COMPACTED: Config = (("cleanup.policy", "compact"), *_SMALL, *_STAMPED)


def list_topics(draft: Draft) -> Draft:
    """Fill in the draft's topics: the inputs first, then each fragment's own."""
    network = draft.network
    read = {stream.name for fragment in draft.fragments for stream in fragment.inputs}
    topics = [
        *_external(network, draft.fragments),
        *(topic for fragment in draft.fragments for topic in _of_fragment(network, fragment, read)),
    ]
    return replace(draft, topics=tuple(topics))


def _external(network: Network, fragments: Iterable[Fragment]) -> Iterator[NewTopic]:
    """The topics of the external streams that some fragment reads; two streams may share one.

    Then the topic gets the larger of their partition counts, and the longer retention.
    """
    partitions: dict[TopicName, int] = {}
    kept_ms: dict[TopicName, int] = {}
    for fragment in fragments:
        for stream in fragment.inputs:
            if isinstance(stream, ExternalStream):
                topic = stream.topic
                partitions[topic] = max(partitions.get(topic, 0), stream.partitions)
                kept_ms[topic] = max(kept_ms.get(topic, 0), _kept_ms(network, stream))
    for topic, count in partitions.items():
        yield replace(_kept(network, topic, count, kept_ms[topic]), external=True)


def _kept_ms(network: Network, stream: FragmentInput) -> int:
    """The retention of a stream's topic."""
    if isinstance(stream, ExternalStream):
        chosen = stream.retention_ms
    else:
        output = outputs_of(network).get(stream.name)
        chosen = output.retention_ms if output else None
    return network.retention_ms if chosen is None else chosen


def tentative_retention_ms(network: Network, fragment: Fragment) -> int:
    """The retention of the tentative results of a fragment, if it has some."""
    return min(_kept_ms(network, fragment.output), TENTATIVE_RETENTION_MS)


def _of_fragment(
    network: Network, fragment: Fragment, read: Container[StreamName]
) -> Iterator[NewTopic]:
    """The topics that a fragment writes; `read`: the streams that fragments read."""
    names, output = fragment.names, fragment.output
    kept_ms, written = _kept_ms(network, output), (*_LARGE, *_OWN_TIME)
    if network.trims_internal and output.name in read and output.name not in outputs_of(network):
        config = (("cleanup.policy", "delete"), *_UNLIMITED, *written)
        yield replace(_topic(network, output.topic, output.partitions, config), by_need=True)
    else:
        yield _kept(network, output.topic, output.partitions, kept_ms, written)
    yield _compacted(network, boundaries_topic(output.topic))
    if fragment.tentative_topic is not None:
        tentative_ms = tentative_retention_ms(network, fragment)
        topic, number = fragment.tentative_topic, output.partitions
        tentative = _kept(network, topic, number, tentative_ms, written)
        bound_ms = 0 if fragment.availability is None else fragment.availability.bound_ms
        yield replace(tentative, follows=(output.topic,), kept_above_ms=bound_ms)
    inputs = tuple(dict.fromkeys(stream.topic for stream in fragment.inputs))
    widest = max(stream.partitions for stream in fragment.inputs)
    letters = (("cleanup.policy", "delete"), *_UNLIMITED, *_LARGE, *_STAMPED)
    yield replace(
        _topic(network, names.dead_letters, widest, letters), follows=inputs, trimmed=True
    )
    longest_ms = max(network.retention_ms, *(_kept_ms(network, s) for s in fragment.inputs))
    # Records sent again must not be deleted by size, whatever the broker's default is.
    again = (("retention.bytes", "-1"), *written)
    redrive = _kept(network, names.redrive, widest, longest_ms, again)
    yield replace(redrive, follows=inputs, when_needed=True)
    # Positions of thousands of partitions may be in one record.
    lasting = (*_LARGE, (MIN_COMPACTION_LAG_MS, str(MARKERS_KEPT_MS)))
    yield _compacted(network, names.markers, lasting)


def _kept(
    network: Network, name: TopicName, partitions: int, kept_ms: int, more: Config = ()
) -> NewTopic:
    retention: Config = (("cleanup.policy", "delete"), ("retention.ms", str(kept_ms)))
    return _topic(network, name, partitions, (*retention, *more))


def _compacted(network: Network, name: TopicName, more: Config = ()) -> NewTopic:
    return replace(_topic(network, name, 1, (*_COMPACTED, *more)), single_partition=True)


def _topic(network: Network, name: TopicName, partitions: int, config: Config) -> NewTopic:
    if network.replication >= SAFE_REPLICAS:
        config = (*config, ("min.insync.replicas", "2"))
    return NewTopic(name, partitions, network.replication, tuple(sorted(config)), external=False)
