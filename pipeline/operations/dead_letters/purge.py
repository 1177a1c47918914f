"""Removal of old dead letters, except those that a rebuild needs."""

from collections.abc import Mapping

from pipeline.counting import counted
from pipeline.dead_letters.letter import read
from pipeline.dead_letters.purge import Purge, purge
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import Millis, Offset
from pipeline.lanes.needed_letters import kept_from
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.positions import last_marker
from pipeline.operations.topics import committed_records, topic_ends
from pipeline.planner.plan import Fragment


def removable_letters(
    fragment: Fragment, before_ms: Millis | None, connections: Connections
) -> Purge:
    """The dead letters that can be removed; changes nothing.

    The offsets that the last commit marker needs only increase, so the result stays valid.

    Args:
        fragment: the fragment.
        before_ms: only dead letters appended before; None: of any age.
        connections: to Kafka.

    Raises:
        RefusedError: a rebuild needs the oldest dead letters, so none can be removed.
        RetryError: a transaction is open, which may contain a later marker.
    """
    topic = fragment.names.dead_letters
    ends = topic_ends(topic, connections)
    needed_from = _needed_from(fragment, ends, connections)
    letters = map(read, committed_records(topic, ends, connections))
    found = purge(letters, ends, before_ms, needed_from)
    if found.needed and not found.removed:
        raise RefusedError(
            f"{counted(found.needed, 'dead letter')} cannot be removed yet: a rebuild of the "
            "state needs the oldest of them",
            place=f"fragment {label(fragment)}",
            hint="they can be removed once the windows and rows that their inputs fill are closed.",
        )
    return found


def remove_letters(fragment: Fragment, found: Purge, connections: Connections) -> None:
    """Remove dead letters; this cannot be undone."""
    connections.topics.delete_records(fragment.names.dead_letters, found.until)


def _needed_from(
    fragment: Fragment, ends: Mapping[int, Offset], connections: Connections
) -> Mapping[int, Offset]:
    """Partition → offset from which dead letters are needed, by a marker read after the ends.

    Raises:
        RetryError: a transaction is open, which may contain a later marker.
    """
    letters, markers = fragment.names.dead_letters, fragment.names.markers
    if not connections.topics.await_decided(markers):
        raise RetryError("a transaction of the fragment is open", place=f"topic {markers}")
    marker = last_marker(fragment.names, connections)
    if marker is None:
        return {}
    described = connections.topics.describe((letters,))
    topic_id = described[letters].topic_id if letters in described else ""
    return kept_from(marker, topic_id, ends)
