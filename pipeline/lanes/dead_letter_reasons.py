"""Reasons of dead letters. Pure; `spark/query/reasons.py` writes the message of each."""

from enum import Enum


class Reason(Enum):
    """Reason of a dead letter, as in its header."""

    FOREIGN = "foreign"
    EMPTY_VALUE = "empty_value"
    NOT_WIRE_FORMAT = "not_wire_format"
    SCHEMA_NOT_FOUND = "schema_not_found"
    UNDECODABLE = "undecodable"
    EVENT_TIME_FAILED = "event_time_failed"
    EVENT_TIME_MISSING = "event_time_missing"
    EVENT_TIME_AHEAD = "event_time_ahead"
    EVENT_TIME_BEFORE_1970 = "event_time_before_1970"
    EVALUATION_FAILED = "evaluation_failed"
    """Followed, if requested, by the failed expression: see `Failed`."""
    LATE = "late"
    """The record counts in no result, since all its windows or its time were closed."""
    PARTLY_LATE = "partly_late"
    """The record counts only in those of its windows that had not ended."""


LATENESS = frozenset({Reason.LATE.value, Reason.PARTLY_LATE.value})
"""The reasons of valid records that came too late."""
