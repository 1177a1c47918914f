"""Topics that are kept by need, before a deploy: who may read them, and what is gone. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.deploy.others import Others
from pipeline.errors import Problem
from pipeline.ids import FragmentName, Incarnation, Offset, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.inputs import ChangedInput
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.state import OnChange

_WHY = "only what fragments of participant {} need is kept there"


@dataclass(frozen=True, slots=True)
class Removed:
    """What is gone of the topics that a plan reads and that are kept by need.

    Args:
        topics: those that have lost records.
        lost: of them, per fragment, those with records that it has not read, or that its state is
            built from: it was not deployed, or did not read them, when they were removed.
    """

    topics: frozenset[TopicName] = frozenset()
    lost: Mapping[FragmentName, tuple[TopicName, ...]] = field(default_factory=dict)


def by_need(plan: Plan, others: Others) -> frozenset[TopicName]:
    """The topics that a plan writes or reads and that are kept by need."""
    return plan.kept.by_need | {topic for topic, one in others.taken.items() if one.by_need}


def lost_topics(
    fragment: Fragment,
    marker: CommitMarker,
    topics: frozenset[TopicName],
    starts: Mapping[TopicName, Mapping[int, Offset]],
) -> tuple[TopicName, ...]:
    """The topics, of some, that have lost what a fragment needs to go on.

    Args:
        fragment: as planned.
        marker: its last marker, under the names of the plan.
        topics: the topics.
        starts: the oldest offsets of topics.
    """
    positions = marker.needed if fragment.traits.stateful else marker.end
    found = {
        at.topic
        for at, offset in positions.items()
        if at.topic in topics and offset < starts.get(at.topic, {}).get(at.partition, offset)
    }
    return tuple(sorted(found))


def foreign_readers(plan: Plan, others: Others) -> Iterator[Problem]:
    """Readers of another participant: the writer does not know what they need."""
    for fragment in plan.fragments:
        for stream in fragment.inputs:
            found = others.taken.get(stream.topic)
            if found is None or not found.by_need:
                continue
            participant = found.network.participant
            if participant != plan.network.participant:
                yield Problem(
                    f"stream {stream.name} reads topic {stream.topic}, which is {found}: "
                    + _WHY.format(participant),
                    hint="ask for an output of that network: outputs are not kept by need.",
                )
    for topic in sorted(plan.kept.by_need & others.read.keys()):
        network = others.read[topic]
        yield Problem(
            f"topic {topic} is read by network {network} of participant {network.participant}: "
            + _WHY.format(plan.network.participant),
            hint="make the stream an output, or leave internal_retention out.",
        )


def need_warnings(
    plan: Plan,
    removed: Removed,
    markers: Mapping[FragmentName, CommitMarker],
    inputs: Mapping[FragmentName, tuple[ChangedInput, ...]],
    chosen: Mapping[FragmentName, tuple[OnChange, Incarnation]],
) -> Iterator[str]:
    """Warnings about records that are gone since no fragment needed them.

    Args:
        plan: what is wanted.
        removed: what is gone.
        markers: of the fragments that have run.
        inputs: the inputs that fragments begin to read, or leave.
        chosen: the choices for states.
    """
    for fragment in plan.fragments:
        name = fragment.name
        choice = chosen[name][0] if name in chosen else None
        begun = {one.topic for one in inputs.get(name, ()) if one.begins}
        for topic in sorted({stream.topic for stream in fragment.inputs} & removed.topics):
            gone = f"topic {topic} is kept by need, and records that no fragment needed are gone"
            if topic in begun or name not in markers:
                yield f"{gone}: {name} begins at what is left"
            elif choice is OnChange.REBUILD:
                yield f"{gone}: the state of {name} is built from what is left"
            elif choice is None and topic in removed.lost.get(name, ()):
                yield (
                    f"{gone}, also some that {name} was to go on from: it starts only with "
                    f"`--state {name}=empty`, which goes on with what is left"
                )
