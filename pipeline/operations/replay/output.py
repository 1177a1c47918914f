"""Output topic of a replay: name, settings, and check that it is empty."""

from brokers.records import NewTopicSpec
from pipeline.errors import RefusedError
from pipeline.ids import TopicName
from pipeline.names import INTERNAL_SUFFIXES, replay_topic
from pipeline.operations.connections import Connections
from pipeline.operations.networks import deployed_plans
from pipeline.operations.replay.fragment import ReplayedFragment
from pipeline.operations.topics import topic_ends

_NUMBERS = 64
_NUMBERS_MAX = 1024


def output_topic(
    what: ReplayedFragment, into: str | None, connections: Connections
) -> NewTopicSpec:
    """Output topic of a replay, with the partitions and settings of the fragment's output.

    Its retention is unlimited: Kafka computes retention from timestamps, and those of a replay are
    old.

    Args:
        what: the fragment that is replayed.
        into: the name of the topic; None: OUTPUT.replay-N with the first unused number.
        connections: to Kafka and ZooKeeper.

    Raises:
        RefusedError: the name belongs to a network, or the topic has records.
    """
    output = what.fragment.output.topic
    topic = _unused(output, connections) if into is None else TopicName(into)
    mine = {t.name for plan in deployed_plans(connections.catalog) for t in plan.topics}
    if topic in mine or topic.endswith(INTERNAL_SUFFIXES):
        raise RefusedError(
            "the topic belongs to a network, or is named like one that Medusa keeps for itself",
            place=f"topic {topic}",
            hint="a replay goes into a topic of its own: leave `--into` out, or name another one.",
        )
    like = next(t for t in what.plan.topics if t.name == output)
    there = connections.topics.describe([output])
    partitions = there[output].partitions if output in there else like.partitions
    config = {**dict(like.config), "retention.ms": "-1"}
    spec = NewTopicSpec(topic, partitions, like.replication, tuple(sorted(config.items())))
    check_empty(spec, connections)
    return spec


def check_empty(spec: NewTopicSpec, connections: Connections) -> None:
    """Raise unless a topic is missing or empty, as after an interrupted replay.

    Raises:
        RefusedError: it has records, or another number of partitions.
    """
    there = connections.topics.describe([spec.name]).get(spec.name)
    if there is None:
        return
    problem = ""
    if there.partitions != spec.partitions:
        problem = f"it has {there.partitions} partitions, the output has {spec.partitions}"
    ends = topic_ends(spec.name, connections)
    reader = connections.reader()
    reader.assign(connections.topics.start_offsets([spec.name]))
    if next(iter(reader.read_to({spec.name: ends})), None) is not None:
        problem = "it holds records"
    if problem:
        raise RefusedError(
            f"the topic exists already, and {problem}",
            place=f"topic {spec.name}",
            hint="leave `--into` out for a new one, name another one, or delete it.",
        )


def _unused(output: TopicName, connections: Connections) -> TopicName:
    """The first numbered name that no topic has."""
    for first in range(1, _NUMBERS_MAX, _NUMBERS):
        names = [replay_topic(output, number) for number in range(first, first + _NUMBERS)]
        there = connections.topics.describe(names)
        free = next((name for name in names if name not in there), None)
        if free is not None:
            return free
    raise RefusedError(
        f"there are {_NUMBERS_MAX} replays of {output}", hint="name a topic with `--into`."
    )
