"""Topic identity checks: the topics of a lane still have their ids at deploy.

A topic that is deleted and created again has the same name and another id. Its offsets identify
other records, so positions and state of a lane are invalid for it. Boundary topics are exempt:
boundaries are published again.
"""

from collections.abc import Callable, Container, Iterable, Mapping

from brokers.kafka_interface import Describing, NoSuchTopicError, TopicAdmin
from brokers.records import MADE_AGAIN, TopicDescription
from pipeline.errors import RefusedError, RetryError, UnavailableError
from pipeline.ids import TopicName
from pipeline.names import boundaries_topic
from pipeline.planner.plan import Fragment


def topics_of(fragment: Fragment, known: Container[TopicName] = ()) -> tuple[TopicName, ...]:
    """All topics that a lane of the fragment reads, and those it writes in its transactions.

    `known`: topics with known ids; the redrive topic is read if it is among them.
    """
    names = fragment.names
    again = (names.redrive,) if names.redrive in known else ()
    own = (*again, names.markers, names.dead_letters)
    return (*own, fragment.output.topic, *(stream.topic for stream in fragment.inputs))


def check_same(
    topics: Iterable[TopicName],
    expected: Mapping[TopicName, str],
    found: Mapping[TopicName, TopicDescription],
) -> None:
    """Compare topics with their expected ids; topics without one are not checked.

    Raises:
        RefusedError: one was deleted and created again.
    """
    for topic in topics:
        described, known = found.get(topic), expected.get(topic)
        if described is not None and known is not None and known != described.topic_id:
            raise RefusedError(
                f"the topic {MADE_AGAIN} since the network was deployed, "
                "so positions in it mean other records",
                place=f"topic {topic}",
                hint="if a stream is read from it, deploy with `--input STREAM=beginning` or "
                "`--input STREAM=end` (and `--state`, for a state that was made of it); else "
                "destroy the network and deploy it again to start over",
            )


def check_there(topics: Iterable[TopicName], found: Mapping[TopicName, TopicDescription]) -> None:
    """Check that topics exist.

    Raises:
        NoSuchTopicError: one does not; a lane waits for it.
    """
    for topic in topics:
        if topic not in found:
            raise NoSuchTopicError(
                "the topic does not exist",
                place=f"topic {topic}",
                hint="it was there at deploy; as long as it is away nothing is read or written. If "
                "it was deleted, `medusa deploy` says what can be done",
            )


class TopicWatch:
    """Watches the topics of one lane while it runs.

    Args:
        admin: describes topics.
        topics: those that must keep their ids.
        expected: their ids when the network was deployed.
        replaceable: topics that may be deleted and created again.
    """

    def __init__(
        self,
        admin: TopicAdmin,
        topics: tuple[TopicName, ...],
        expected: Mapping[TopicName, str],
        replaceable: tuple[TopicName, ...] = (),
    ) -> None:
        self._admin = admin
        self._topics = topics
        self._expected = expected
        self._replaceable = replaceable
        self._asked: Describing | None = None
        self._found: Mapping[TopicName, TopicDescription] | None = None

    @property
    def answered(self) -> bool:
        """Whether the topics were described at least once."""
        return self._found is not None

    def last(self, topic: TopicName) -> TopicDescription | None:
        """The latest description of a topic; None if it has none. Thread-safe."""
        return None if self._found is None else self._found.get(topic)

    def ask(self) -> Callable[[], None]:
        """Send a request; the returned function awaits the answer, and raises as `poll` does.

        If it does not raise, earlier reads were from the expected topics.
        """
        asked = self._begin()
        return lambda: self._judge(asked.result())

    def poll(self) -> None:
        """Check the answer to the previous request, if it arrived, and send another; never waits.

        Raises:
            RefusedError: a topic was deleted and created again.
            NoSuchTopicError: a topic is gone.
        """
        if self._asked is not None and not self._asked.done():
            return
        asked, self._asked = self._asked, self._begin()
        if asked is None:
            return
        try:
            found = asked.result()
        except (UnavailableError, RetryError):  # reads and writes have longer timeouts
            return
        self._judge(found)

    def _begin(self) -> Describing:
        return self._admin.begin_describing((*self._topics, *self._replaceable))

    def _judge(self, found: Mapping[TopicName, TopicDescription]) -> None:
        self._found = found
        check_same(self._topics, self._expected, found)
        check_there(self._topics, found)


def watch_topics(
    admin: TopicAdmin, fragment: Fragment, topic_ids: Mapping[TopicName, str]
) -> TopicWatch:
    """A watch of a lane's topics, with their ids at deploy."""
    replaceable = (boundaries_topic(fragment.output.topic),)
    return TopicWatch(admin, topics_of(fragment, topic_ids), topic_ids, replaceable)
