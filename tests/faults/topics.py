"""The topics of a fragment, as the checks of a history need them."""

from collections.abc import Collection

from pipeline.ids import TopicName
from pipeline.names import boundaries_topic
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment
from tests.faults.judge import FragmentTopics


def topics_of(fragment: Fragment, redriven: Collection[TopicName] = frozenset()) -> FragmentTopics:
    """The topics that a fragment writes, and those of external streams that it reads.

    `redriven`: the redrive topics that exist; it reads its own one, too.
    """
    names = fragment.names
    return FragmentTopics(
        name=fragment.name,
        output=fragment.output.topic,
        boundaries=boundaries_topic(fragment.output.topic),
        dead_letters=names.dead_letters,
        markers=names.markers,
        tentative=fragment.tentative_topic,
        reads=frozenset(
            TopicName(source.topic)
            for source in fragment.inputs
            if isinstance(source, ExternalStream)
        )
        | ({names.redrive} & set(redriven)),
    )
