"""Redrive topic of a fragment: created by the first redrive and then recorded in the catalog.

A redrive creates the topic, and writes its id to the catalog before it sends records. So the
fragment's lane reads every topic that contains records: a change of topic ids in the catalog
restarts it. Before a redrive creates the topic, it records that in the catalog, as deploys do, so
that the next redrive or deploy after an interrupted one can identify the topic as the network's. A
topic that only the last commit marker names was created by the network as well: the catalog was
restored from a state before that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.records import MADE_AGAIN, TopicDescription
from pipeline.catalog.catalog import Catalog
from pipeline.deploy.apply import created_by_unfinished_deploys, spec_of
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
        fragment: the fragment.
        catalog: contains the topic's id.
        topics: the Kafka client.
        log: reads the last commit marker.
    """

    plan: Plan
    fragment: Fragment
    catalog: Catalog
    topics: TopicAdmin
    log: LogReader

    @property
    def planned(self) -> NewTopic:
        """The topic as planned."""
        return self._fitting({})

    def is_there(self) -> bool:
        """Whether the topic exists; if not, no record was redriven.

        Raises:
            RefusedError: the catalog, or the fragment's last commit marker, contains the id of a
                topic that does not exist any more.
        """
        described, expected = self._described(), self._recorded() or self._read()
        if expected is not None and (described is None or described.topic_id != expected):
            what = "is gone" if described is None else MADE_AGAIN
            raise RefusedError(
                f"the topic {what}: which dead letters were sent again is not known any more",
                place=f"topic {self.fragment.names.redrive}",
                hint=START_OVER,
            )
        return described is not None

    def create(self) -> None:
        """Create the topic, if it does not exist, and add it to the fragment's record. Idempotent.

        Raises:
            RefusedError: the network must not create topics, or is not deployed any more; the topic
                exists with unsuitable settings; or as for `is_there`.
            RetryError: others change the catalog, or remove topics, at the same time.
        """
        names, network, created = self.fragment.names, self.plan.network, False
        topic = names.redrive
        if not self.is_there():
            new = self._new_topic()
            self.catalog.deploys.begin(network, (topic,))
            created = bool(self.topics.create_topics((spec_of(new),)))
        begun = topic in self.catalog.deploys.begun(network)
        described = self._described()
        if described is None:
            raise RetryError("the topic is gone again", place=f"topic {topic}", hint="run it again")
        self._check_settings()
        made = created or (begun and bool(created_by_unfinished_deploys((topic,), self.topics, ())))
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
        """The topic's id in the catalog, which may have been restored; None: none."""
        names = self.fragment.names
        record = self.catalog.fragments.get(names.network, names.fragment)
        return None if record is None else dict(record.topic_ids).get(names.redrive)

    def _read(self) -> str | None:
        """The id of the topic that the fragment has read, unless it begins anew; None: none."""
        names = self.fragment.names
        marker = last_markers((self.fragment,), self.topics, self.log).get(self.fragment.name)
        if marker is None or marker.redrive is None:
            return None
        network = self.catalog.networks.get(names.network)
        record = self.catalog.fragments.get(names.network, names.fragment)
        anew = network is not None and pending_succession(record, network.life, marker) is not None
        return None if anew else marker.redrive[1]

    def _new_topic(self) -> NewTopic:
        """The topic to create, with as many partitions as the existing topics that it follows."""
        existing = self.topics.describe(self.planned.follows)
        new = self._fitting({name: found.partitions for name, found in existing.items()})
        if self.plan.auto_create:
            return new
        raise RefusedError(
            f"the topic does not exist, and auto_create is false: it needs {needs(new)}",
            place=f"topic {new.name}",
            hint="have it created like this, and run it again.",
        )

    def _fitting(self, partitions: Mapping[TopicName, int]) -> NewTopic:
        topic = self.fragment.names.redrive
        return next(one for one in fitting(self.plan, partitions) if one.name == topic)
