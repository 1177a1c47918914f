"""The last commit marker of a fragment, read from its topic."""

from typing import Final

from brokers.kafka.reader import read_last
from brokers.kafka.servers import Brokers
from pipeline.lanes import codec
from pipeline.lanes.continuity import LOOKED_AT, check_markers
from pipeline.lanes.markers import CommitMarker
from pipeline.names import FragmentNames

READ_DEADLINE_S: Final = 60.0


def read_marker(brokers: Brokers, names: FragmentNames) -> CommitMarker | None:
    """The last commit marker that a reader sees; None if there is none.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is damaged, or the newest markers contradict each other.
    """
    place = f"topic {names.markers}"
    records = read_last(brokers, names.markers, 0, LOOKED_AT, READ_DEADLINE_S)
    markers = [codec.decode_marker(r.value, place) for r in records if r.value is not None]
    check_markers(markers, place)
    return markers[-1] if markers else None
