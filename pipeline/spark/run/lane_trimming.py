"""Removals of records by a lane: of what it writes, and of its inputs before it begins."""

import logging
from contextlib import suppress
from typing import Final

from brokers.kafka_interface import OffsetGoneError, TopicAdmin
from brokers.log_reader import LogReader
from pipeline.dead_letters import retention
from pipeline.ids import TopicId
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.trimming import by_need
from pipeline.trimming.schedule import Trimmer

READ_DEADLINE_S: Final = 60.0


def new_trimmers(settings: LaneSettings, host: LaneHost) -> tuple[Trimmer, ...]:
    """The removals of a lane that writes: of old dead letters, and of results kept by need."""
    if settings.readers is None:
        return ()
    names, output = settings.fragment.names, settings.fragment.output.topic
    admin, log = host.resolver.admin, LogReader(host.kafka, READ_DEADLINE_S)

    def letters_ms() -> int | None:
        kept = settings.kept()
        return None if kept is None else kept.letters_ms

    def is_by_need() -> bool:
        kept = settings.kept()
        return kept is not None and output in kept.by_need

    letters = retention.Retention(names, admin, log, letters_ms)
    results = by_need.ByNeed(
        topic=output,
        topic_id=TopicId(settings.output_id),
        is_wanted=is_by_need,
        topics=admin,
        log=log,
        readers=settings.readers,
        clock=host.clock,
    )
    return (
        Trimmer("old dead letters", letters.apply, retention.EVERY_S, names.id, host.clock),
        Trimmer(
            "results that no fragment needs",
            results.apply,
            by_need.EVERY_S,
            names.id,
            host.clock,
            logging.DEBUG,  # at nearly every look
        ),
    )


def finish_trims(settings: LaneSettings, last: CommitMarker | None, admin: TopicAdmin) -> None:
    """Remove of a lane's inputs what their writers have announced, before positions are chosen.

    A writer that has announced a removal may carry it out at any later time, and what is there now
    decides where a source begins, and what a chosen rebuild reads. If the lane has carried out its
    deploy and its choice, its last marker decides both, and nothing that it needs was announced.

    Args:
        settings: of the lane.
        last: its last marker.
        admin: Kafka's topics.
    """
    carried_out = last is not None and last.decided == settings.deploy
    if settings.readers is None or (carried_out and settings.on_change(last) is None):
        return
    inputs = {stream.topic for stream in settings.fragment.inputs}
    ids = {topic: one for topic, one in settings.topic_ids.items() if topic in inputs}
    for topic, before in settings.readers.announced(ids).items():
        with suppress(OffsetGoneError):  # Kafka itself has lost what was behind these records
            admin.delete_records(topic, before)
