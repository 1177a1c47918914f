"""Looks at the topics of networks: which there are, how they are, what we may do with them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from brokers.kafka.rights import KafkaRights
from brokers.kafka_interface import TopicAdmin
from brokers.records import TopicDescription
from pipeline.deploy.apply import spec_of
from pipeline.doctor.facts import NetworkSeen, TopicSeen, Trouble
from pipeline.errors import MedusaError
from pipeline.ids import TopicName
from pipeline.planner.plan import NewTopic, Plan

Answer = frozenset[str] | MedusaError
"""What we may do with a topic, or why that could not be learned."""


@dataclass(frozen=True, slots=True)
class TopicsLook:
    """Whom to ask."""

    admin: TopicAdmin
    rights: KafkaRights

    def of(self, network: NetworkSeen, plan: Plan) -> NetworkSeen:
        """A network with its topics."""
        try:
            topics = self._topics(network, plan)
        except MedusaError as error:
            return replace(network, trouble=Trouble.of(error))
        return replace(network, topics=topics)

    def _topics(self, network: NetworkSeen, plan: Plan) -> tuple[TopicSeen, ...]:
        allowed = self.rights.on_topics(topic.name for topic in plan.topics)
        seen = {name: words for name, words in allowed.items() if isinstance(words, frozenset)}
        there = self.admin.describe(seen)
        configs = self.admin.topic_configs(n for n, words in seen.items() if _tells(words))
        needed = (topic for topic in plan.topics if not topic.when_needed)
        absent = [topic for topic in needed if topic.name not in allowed]
        asked = absent if plan.auto_create and not network.deployed else []
        against = self.rights.why_not_created(spec_of(topic) for topic in asked)
        answers: Mapping[TopicName, Answer | None] = {**against, **allowed}
        return tuple(_seen(topic, answers.get(topic.name), there, configs) for topic in plan.topics)


def _seen(
    topic: NewTopic,
    answer: Answer | None,
    there: Mapping[TopicName, TopicDescription],
    configs: Mapping[TopicName, Mapping[str, str]],
) -> TopicSeen:
    return TopicSeen(
        wanted=topic,
        there=there.get(topic.name),
        config=configs.get(topic.name, {}),
        allowed=answer if isinstance(answer, frozenset) else frozenset(),
        trouble=Trouble.of(answer) if isinstance(answer, MedusaError) else None,
    )


def _tells(allowed: frozenset[str]) -> bool:
    """Whether a topic's settings may be read; where no rights are kept, all may."""
    return not allowed or "DESCRIBE_CONFIGS" in allowed
