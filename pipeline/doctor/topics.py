"""Probe of the topics of networks: existence, settings, rights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from brokers.kafka.rights import KafkaRights
from brokers.kafka_interface import TopicAdmin
from brokers.records import TopicDescription
from pipeline.deploy.apply import spec_of
from pipeline.doctor.facts import ObservedNetwork, ObservedTopic, Trouble
from pipeline.errors import MedusaError
from pipeline.ids import TopicName
from pipeline.planner.plan import NewTopic, Plan

Rights = frozenset[str] | MedusaError
"""The allowed operations on a topic, or why they are unknown."""


@dataclass(frozen=True, slots=True)
class TopicProbe:
    """Describes the topics of a network."""

    admin: TopicAdmin
    rights: KafkaRights

    def of(self, network: ObservedNetwork, plan: Plan) -> ObservedNetwork:
        """A network with its observed topics."""
        try:
            topics = self._topics(network, plan)
        except MedusaError as error:
            return replace(network, trouble=Trouble.of(error))
        return replace(network, topics=topics)

    def _topics(self, network: ObservedNetwork, plan: Plan) -> tuple[ObservedTopic, ...]:
        allowed = self.rights.on_topics(topic.name for topic in plan.topics)
        present = {
            name: rights for name, rights in allowed.items() if isinstance(rights, frozenset)
        }
        found = self.admin.describe(present)
        configs = self.admin.topic_configs(n for n, rights in present.items() if _readable(rights))
        needed = (topic for topic in plan.topics if not topic.when_needed)
        absent = [topic for topic in needed if topic.name not in allowed]
        to_create = absent if plan.auto_create and not network.deployed else []
        against = self.rights.why_not_created(spec_of(topic) for topic in to_create)
        answers: Mapping[TopicName, Rights | None] = {**against, **allowed}
        return tuple(_observed(one, answers.get(one.name), found, configs) for one in plan.topics)


def _observed(
    topic: NewTopic,
    answer: Rights | None,
    found: Mapping[TopicName, TopicDescription],
    configs: Mapping[TopicName, Mapping[str, str]],
) -> ObservedTopic:
    return ObservedTopic(
        planned=topic,
        actual=found.get(topic.name),
        config=configs.get(topic.name, {}),
        allowed=answer if isinstance(answer, frozenset) else frozenset(),
        trouble=Trouble.of(answer) if isinstance(answer, MedusaError) else None,
    )


def _readable(allowed: frozenset[str]) -> bool:
    """Whether a topic's settings may be read; without access control lists, they may."""
    return not allowed or "DESCRIBE_CONFIGS" in allowed
