"""Lookup of streams by name: topic, writers, newest schema."""

from pipeline.deploy.streams import choices, find
from pipeline.errors import RefusedError, SchemaError, UnavailableError
from pipeline.ids import TopicName
from pipeline.names import value_subject
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.networks import deployed_plans, own_plans
from schemas.records import RegisteredSchema


def topic_of(name: str, connections: Connections, *, without_catalog: bool = False) -> TopicName:
    """The topic of a stream of a deployed network, or any topic, by name.

    Args:
        name: the name that the user typed.
        connections: to the catalog, and to Kafka.
        without_catalog: whether to accept the name of a topic while ZooKeeper does not answer.

    Raises:
        RefusedError: no stream or topic has the name; lists the streams; or it is ambiguous.
    """
    try:
        plans = own_plans(connections)
    except UnavailableError:
        topic = TopicName(name)
        if without_catalog and topic in connections.topics.describe([topic]):
            return topic
        raise
    arrow = find(name, plans)
    topic = arrow.topic if arrow else TopicName(name)
    if topic in connections.topics.describe([topic]):
        return topic
    existing = choices(plans, name)
    raise RefusedError(
        f"there is no stream or topic {name}",
        hint=f"there is: {', '.join(existing)}." if existing else "no network is deployed.",
    )


def writers_of(topic: TopicName, connections: Connections) -> tuple[str, ...]:
    """The deployed fragments of all participants that write a topic, as `network.fragment`."""
    return tuple(
        label(fragment, connections.participant)
        for plan in deployed_plans(connections.catalog)
        for fragment in plan.fragments
        if fragment.output.topic == topic
    )


def newest_schema(topic: TopicName, connections: Connections) -> RegisteredSchema:
    """The newest schema of a topic's values.

    Raises:
        SchemaError: there is none.
    """
    subject = value_subject(topic)
    found = connections.registry.latest(subject)
    if found is None:
        raise SchemaError(
            f"topic {topic} has no registered schema",
            place=f"subject {subject}",
            hint=f"`medusa schema register {subject} FILE`, or deploy the network that reads it.",
        )
    return found
