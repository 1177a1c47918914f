"""The last commit marker of a fragment, read from its topic."""

from typing import Final

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import read_last
from brokers.kafka.servers import Brokers
from pipeline.errors import RetryError
from pipeline.lanes import codec
from pipeline.lanes.markers import CommitMarker
from pipeline.names import FragmentNames

READ_DEADLINE_S: Final = 60.0


def read_marker(brokers: Brokers, names: FragmentNames) -> CommitMarker | None:
    """The last commit marker that a reader sees; None if there is none."""
    records = read_last(brokers, names.markers, 0, 1, READ_DEADLINE_S)
    if not records or records[-1].value is None:
        return None
    return codec.decode_marker(records[-1].value, f"topic {names.markers}")


def settled_marker(
    brokers: Brokers, admin: KafkaAdmin, names: FragmentNames
) -> CommitMarker | None:
    """The last commit marker, once nothing in its topic is undecided; None if there is none.

    Call it when the last owner is fenced. A reader of committed records sees nothing behind the
    first record of an open transaction, and a commit shows a little later than it is certain.

    Raises:
        RetryError: a transaction is still open.
    """
    if not admin.await_decided(names.markers):
        raise RetryError(
            "a transaction that has written there is open, so a reader may not see the last commit "
            "marker",
            place=f"topic {names.markers}",
            hint="it ends by its timeout; if it does not, `kafka-transactions.sh find-hanging` "
            "finds it and `abort` ends it",
        )
    return read_marker(brokers, names)
