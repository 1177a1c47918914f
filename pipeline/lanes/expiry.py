"""Search for records that retention removes before a lane has used them, in the topics of a lane.

It asks for settings, ranges, and offsets by time; no record is read.
"""

from collections.abc import Mapping

from brokers.kafka_interface import Isolation, NoSuchTopicError, TopicAdmin
from pipeline.ids import Millis, Offset, TopicName
from pipeline.lanes.expiring import ExpiringRecords, LogNeeds, Observed, topic_log


def find_expiring(
    admin: TopicAdmin, needs: LogNeeds, now_ms: Millis
) -> tuple[ExpiringRecords, ...]:
    """The records that a lane needs and that are removed soon, or were removed.

    Topics that are gone, or were made again, are not examined: a lane stops for another reason.

    Raises:
        MedusaError: Kafka does not answer, or may not be asked.
    """
    if not needs.topics:
        return ()
    described = admin.describe(sorted(needs.topics))
    topics = [
        topic for topic, one in described.items() if one.topic_id == needs.topics[topic].topic_id
    ]
    if not topics:
        return ()
    configs = admin.topic_configs(topics)
    starts, ends = admin.start_offsets(topics), admin.end_offsets(topics, Isolation.UNCOMMITTED)
    found: list[ExpiringRecords] = []
    for topic in sorted(configs):
        log = topic_log(configs[topic], starts.get(topic, {}), ends.get(topic, {}))

        def offsets_at(time_ms: Millis, topic: TopicName = topic) -> Mapping[int, Offset]:
            return admin.offsets_for_time(topic, time_ms)

        try:
            found += Observed(topic, log, offsets_at, now_ms).expiring(needs)
        except NoSuchTopicError:  # deleted, or without a leader, since it was described
            continue
    return tuple(found)
