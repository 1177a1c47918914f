"""What the `dlq` verbs share: the fragments that a name means, and what their topics hold."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import click

from brokers.kafka.reader import TopicReader
from brokers.kafka_interface import complete
from brokers.records import KafkaRecord
from pipeline.cli.connections import Connections
from pipeline.cli.options import F
from pipeline.cli.streams import deployed_plans
from pipeline.dead_letters.letter import Identity, Letter, Place, read
from pipeline.dead_letters.originals import rounds
from pipeline.dead_letters.redrive import sent_letters
from pipeline.deploy.redriving import RedriveTopic
from pipeline.errors import RefusedError
from pipeline.ids import Offset, TopicName
from pipeline.planner.plan import Fragment, Plan
from pipeline.spark.query.hidden import Reason

REASONS = tuple(reason.value for reason in Reason)


def label(fragment: Fragment) -> str:
    """The name by which a fragment is told."""
    return f"{fragment.names.network}.{fragment.names.fragment}"


def fragments_of(name: str, connections: Connections) -> tuple[Fragment, ...]:
    """The deployed fragments that `NETWORK`, `NETWORK.FRAGMENT` or `FRAGMENT` means; "" is all.

    Raises:
        RefusedError: there is none of that name; says what there is.
    """
    every = tuple(f for plan in deployed_plans(connections) for f in plan.fragments)
    found = tuple(f for f in every if name in {"", f.names.network, f.names.fragment, label(f)})
    if name and not found:
        there = ", ".join(label(f) for f in every)
        raise RefusedError(
            f"there is no network or fragment {name}",
            hint=f"there is: {there}." if there else "no network is deployed.",
        )
    return found


def fragment_of(name: str, connections: Connections) -> Fragment:
    """The one fragment that a name means.

    Raises:
        RefusedError: it means none, or several.
    """
    found = fragments_of(name, connections)
    exact = [f for f in found if name in {label(f), f.names.fragment}] or found
    if len(exact) != 1:
        several = ", ".join(label(f) for f in found)
        raise RefusedError(f"{name} means several fragments", hint=f"write one of: {several}.")
    return exact[0]


def ends_of(topic: TopicName, connections: Connections) -> Mapping[int, Offset]:
    """Where a topic ends now.

    Raises:
        RefusedError: it does not exist.
    """
    ends = connections.topics.end_offsets([topic]).get(topic)
    if ends is None:
        raise RefusedError(
            "the topic does not exist",
            place=f"topic {topic}",
            hint="`medusa deploy` creates what is missing.",
        )
    return ends


def records_to(
    topic: TopicName, ends: Mapping[int, Offset], connections: Connections
) -> Iterator[KafkaRecord]:
    """The committed records of a topic up to these ends, in order within a partition."""
    reader = connections.reader()
    reader.assign(connections.topics.start_offsets([topic]))
    yield from reader.read_to({topic: ends})


def letters_of(fragment: Fragment, connections: Connections) -> Iterator[Letter]:
    """All dead letters of a fragment up to now."""
    topic = fragment.names.dead_letters
    return map(read, records_to(topic, ends_of(topic, connections), connections))


def plan_of(fragment: Fragment, connections: Connections) -> Plan:
    """The plan of the network that a deployed fragment belongs to.

    Raises:
        RefusedError: the network is not deployed any more.
    """
    network = fragment.names.network
    plan = next((one for one in deployed_plans(connections) if one.network == network), None)
    if plan is None:
        raise RefusedError("it is not deployed any more", place=f"network {network}")
    return plan


def redrive_topic(plan: Plan, fragment: Fragment, connections: Connections) -> RedriveTopic:
    """The topic that dead letters of a fragment are sent into again."""
    servers = connections.servers
    return RedriveTopic(plan, fragment, connections.catalog, connections.topics, servers.log)


def sent_again(redrive: RedriveTopic, connections: Connections) -> frozenset[Identity]:
    """Which dead letters of a fragment were sent again.

    Raises:
        RefusedError: that is not known any more, since the topic is gone that they were sent into.
    """
    if not redrive.is_there():
        return frozenset()
    topic = redrive.planned.name
    return sent_letters(records_to(topic, ends_of(topic, connections), connections))


def records_of_rows(
    letters: Sequence[Letter], reader: TopicReader, connections: Connections
) -> Mapping[Place, KafkaRecord]:
    """The records that letters name, as far as they are still there.

    Raises:
        NotNowError: a topic that is there does not say what it holds, as without a leader.
    """
    places = {letter.row: letter.topic_id for letter in letters if letter.row is not None}
    described = connections.topics.describe({place.topic for place in places})
    topics = sorted(described)
    starts = complete(connections.topics.start_offsets(topics), topics)
    ends = complete(connections.topics.end_offsets(topics), topics)
    there = {
        place
        for place, topic_id in places.items()
        if place.topic in described
        and described[place.topic].topic_id == topic_id
        and place.offset >= starts[place.topic].get(place.partition, place.offset + 1)
        and place.offset < ends[place.topic].get(place.partition, 0)
    }
    found = dict[Place, KafkaRecord]()
    for ranges in rounds(there):
        begin, end = (
            {topic: {p: one[at] for p, one in of.items()} for topic, of in ranges.items()}
            for at in (0, 1)
        )
        reader.assign(begin)
        for record in reader.read_to(end):
            place = Place(record.topic, record.partition, record.offset)
            if place in there:
                found[place] = record
    return found


def reason_option(help_text: str) -> Callable[[F], F]:
    """Add `--reason`."""
    return click.option("--reason", type=click.Choice(REASONS), metavar="REASON", help=help_text)
