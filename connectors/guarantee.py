"""What a connector guarantees when it, Kafka or the other end fails. Pure."""

from enum import Enum


class Guarantee(Enum):
    """How often a record arrives, whatever fails in between."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    AT_MOST_ONCE = "at most once"
