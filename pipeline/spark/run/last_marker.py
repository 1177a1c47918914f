"""The last commit marker of a fragment, read from its topic."""

from typing import Final

from brokers.kafka_interface import KafkaCluster, NotNowError, TopicAdmin
from brokers.log_reader import LogReader
from pipeline.lanes.marker_invariants import CHECKED_MAX, check_markers
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames

READ_DEADLINE_S: Final = 60.0


def read_marker(kafka: KafkaCluster, names: FragmentNames) -> CommitMarker | None:
    """Read the last committed marker; None if there is none.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged, or the newest markers contradict each other.
    """
    place = f"topic {names.markers}"
    records = LogReader(kafka, READ_DEADLINE_S).newest(names.markers, CHECKED_MAX)
    markers = [codec.decode_marker(r.value, place) for r in records if r.value is not None]
    check_markers(markers, place)
    return markers[-1] if markers else None


def settled_marker(
    kafka: KafkaCluster, admin: TopicAdmin, names: FragmentNames
) -> CommitMarker | None:
    """Read the last commit marker once no transaction in its topic is open; None if there is none.

    To be called when the last owner is fenced. A reader of committed records sees nothing beyond
    the first record of an open transaction, and a commit becomes visible shortly after it is
    decided.

    Raises:
        NotNowError: a transaction is still open, or a partition has no leader.
    """
    if not admin.await_decided(names.markers):
        raise NotNowError(
            "a transaction that has written there is open, or it has no leader now, so a reader "
            "may not see the last commit marker",
            place=f"topic {names.markers}",
            hint="a transaction ends by its timeout; if it does not, `kafka-transactions.sh "
            "find-hanging` finds it and `abort` ends it",
        )
    return read_marker(kafka, names)
