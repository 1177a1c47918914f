"""The topic of records that are sent again: created when the first are, and then in the catalog.

Whoever sends creates it, and writes its id into the catalog before anything is sent. So no record
is in a topic that the fragment's lane does not come to read: it is told by the catalog, as of every
change of its topics. A run that is cut off has noted before what it was about to create, as deploys
do: the next run, or deploy, has it from there whose the topic is. One that only the last commit
marker names was made by the network as well: the catalog was restored from before that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.records import TopicDescription
from pipeline.catalog.catalog import Catalog
from pipeline.deploy.apply import begun_before, spec_of
from pipeline.deploy.gather import last_markers
from pipeline.deploy.writers import pending_succession
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import TopicName
from pipeline.planner.diff import fitting, needs
from pipeline.planner.existing_topics import misfits
from pipeline.planner.plan import Fragment, NewTopic, Plan
from pipeline.planner.upgrade import START_OVER


@dataclass(frozen=True, slots=True)
class RedriveTopic:
    """The redrive topic of one fragment.

    Args:
        plan: of its network.
        fragment: which one.
        catalog: what knows the topic's id.
        topics: Kafka's.
        log: tells the last commit marker.
    """

    plan: Plan
    fragment: Fragment
    catalog: Catalog
    topics: TopicAdmin
    log: LogReader

    @property
    def planned(self) -> NewTopic:
        """The topic as the plan has it."""
        return self._fitting({})

    def is_there(self) -> bool:
        """Whether the topic exists; as long as it does not, nothing was sent again.

        Raises:
            RefusedError: the catalog, or the fragment's last commit marker, knows one that is not
                there any more.
        """
        described, known = self._described(), self._recorded() or self._read()
        if known is not None and (described is None or described.topic_id != known):
            what = "is gone" if described is None else "was deleted and made again"
            raise RefusedError(
                f"the topic {what}: which dead letters were sent again is not known any more",
                place=f"topic {self.fragment.names.redrive}",
                hint=START_OVER,
            )
        return described is not None

    def create(self) -> None:
        """Let the topic exist, and let the fragment know it; nothing happens if it does.

        Raises:
            RefusedError: the network is not to create topics, or is not deployed any more; the
                topic is there and has settings that do not fit; or as `is_there` says.
            RetryError: others change the catalog, or remove topics, at the same time.
        """
        names, network, created = self.fragment.names, self.plan.network, False
        topic = names.redrive
        if not self.is_there():
            wanted = self._wanted()
            self.catalog.deploys.begin(network, (topic,))
            created = bool(self.topics.create_topics((spec_of(wanted),)))
        begun = topic in self.catalog.deploys.begun(network)
        described = self._described()
        if described is None:
            raise RetryError("the topic is gone again", place=f"topic {topic}", hint="run it again")
        self._check_settings()
        made = created or (begun and bool(begun_before((topic,), self.topics)))
        made = made or (self.plan.auto_create and self._recorded() is None and bool(self._read()))
        self.catalog.fragments.add_topic(
            network, names.fragment, topic, described.topic_id, made=made
        )
        if begun:
            self.catalog.deploys.end(network, (topic,))

    def _check_settings(self) -> None:
        topic = self.planned
        config = self.topics.topic_configs((topic.name,)).get(topic.name, {})
        for wrong in misfits(topic, config):
            raise RefusedError(wrong.message, place=f"topic {topic.name}", hint=wrong.hint)

    def _described(self) -> TopicDescription | None:
        topic = self.fragment.names.redrive
        return self.topics.describe((topic,)).get(topic)

    def _recorded(self) -> str | None:
        """The id of the topic as the catalog has it, which may have been restored; None: none."""
        names = self.fragment.names
        record = self.catalog.fragments.get(names.network, names.fragment)
        return None if record is None else dict(record.topic_ids).get(names.redrive)

    def _read(self) -> str | None:
        """The id of the one that the fragment has read, unless it begins anew; None: none."""
        names = self.fragment.names
        marker = last_markers((self.fragment,), self.topics, self.log).get(self.fragment.name)
        if marker is None or marker.redrive is None:
            return None
        network = self.catalog.networks.get(names.network)
        record = self.catalog.fragments.get(names.network, names.fragment)
        anew = network is not None and pending_succession(record, network.life, marker) is not None
        return None if anew else marker.redrive[1]

    def _wanted(self) -> NewTopic:
        """The topic as it is created beside the topics that exist."""
        there = self.topics.describe(self.planned.follows)
        wanted = self._fitting({name: found.partitions for name, found in there.items()})
        if self.plan.auto_create:
            return wanted
        raise RefusedError(
            f"the topic does not exist, and auto_create is false: it needs {needs(wanted)}",
            place=f"topic {wanted.name}",
            hint="have it created like this, and run it again.",
        )

    def _fitting(self, there: Mapping[TopicName, int]) -> NewTopic:
        topic = self.fragment.names.redrive
        return next(one for one in fitting(self.plan, there) if one.name == topic)
