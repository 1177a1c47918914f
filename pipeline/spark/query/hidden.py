"""The hidden columns of a row inside a query, and the reasons that can stand in `__reason`."""

from dataclasses import dataclass
from enum import Enum

from pipeline.lanes import dead_letters

PREFIX = "__"
"""What all of them begin with, and no column of a user's."""
TOPIC = "__topic"
PARTITION = "__partition"
OFFSET = "__offset"
KEY = "__key"
VALUE = "__value"
KAFKA_TIME = "__kafka_time"
HEADERS = "__headers"
TOLD = "__told"
"""What a header says that may name the schema of a value."""
FRAMED = "__framed"
"""A value with the prefix that names its schema, where a header does so as well; null in a derived
stream's record that no lane has written."""
HANDLE = "__handle"
"""That prefix."""
ADVANCE = "__advance"
"""Milliseconds, in the advances that are meant for this incarnation; else null."""
ROW = "__row"
EVENT_TIME = "__event_time"
REASON = "__reason"
EVENT_MS = "__event_ms"
"""Event time in milliseconds; behind boxes a column only where rows are counted."""
UNREAD = "__unread"
"""How the value of an unfit record begins, with the prefix that names its schema; else null. This
and the next are columns only where rows are counted."""
ORIGIN = "__origin"
"""Where a record came from: a place in `Lowered.origins`; null in rows that are not to count."""
PROGRESS = "__progress"
"""Event time in milliseconds of the stream's own good records; else null."""
REDRIVEN = "__redriven"
"""The same of good records that were sent again."""
WATERMARK = "__watermark"
SPAN = "__span"
"""Where the span of event time begins in which rows of a join are compared; see `joined.py`."""
ID = "__id"
"""What a result is told apart by; a column only where the output can be corrected."""
RECORD = "__record"
"""Of which record a row is, to name it where its result cannot be computed; see `places.record`. A
column only of the rows of an as-of join."""
HELD = "__held"
"""What a table said of a row, in bytes. Of a row on its way to the join: what it said before, if
the row was sent again with it, and empty if nothing held; else null. Of a result: what it says."""
ANSWERED = "__answered"
"""Whether a result's row was sent again with what the table said."""
POSITION = "__position"
POSITION_FIELDS = ("topic", "partition", "offset", "path")
"""Where a row stands, to break ties by: no two rows have the same; a column only where that is
asked for."""

FAILED_ON = "__failed_on"
"""JSON of what a result could not be computed from; a column only behind a stateful box."""
GIVEN = "__given"
"""What a function was given that then failed, for a moment."""

PLACE = (TOPIC, PARTITION, OFFSET)
"""What a record is told apart by, where functions decide."""
ORIGINAL = (TOPIC, PARTITION, OFFSET, KEY, VALUE, KAFKA_TIME, HEADERS)
"""What a dead letter is made of."""
PASSED = (PARTITION, KEY)
"""What a stateless lane needs of a record to place its result."""


class Reason(Enum):
    """Why a record goes to the dead letters; the word stands in a header of the dead letter."""

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
    """Followed, where it is to be told, by what failed: see `Failed`."""
    LATE = dead_letters.LATE
    PARTLY_LATE = dead_letters.PARTLY_LATE


NO_RESULT = "no_result"
"""Stands in `__reason` where a record gives no result and nothing is wrong with it: a filter has
left it out, or its array is empty. Only where rows are counted: `counted.py`."""
SKIPPED = "skipped"
"""The record is of a time that was settled before its source was first read. Only there."""
UNFIT = "unfit"
"""The record is an advance, or something is wrong with it, which inspection tells. Only there."""
UNKNOWN_SCHEMA = "unknown_schema"
"""The query was planned without that schema. It has to be looked up: if there is one, the batch is
given up and run again with it; if not, the record stays out as one whose schema was not found."""


def reason_of(word: str) -> Reason:
    """The reason that a word stands for, once unknown schemas were looked up in vain."""
    return Reason.SCHEMA_NOT_FOUND if word == UNKNOWN_SCHEMA else Reason(word.partition(":")[0])


@dataclass(frozen=True, slots=True)
class Failed:
    """An expression that could not be evaluated: the box, the field and the text as written."""

    box: str = ""
    field: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{Reason.EVALUATION_FAILED.value}:{self.box}:{self.field}:{self.text}"

    @classmethod
    def read(cls, reason: str) -> "Failed":
        """What `str` wrote; names of boxes and fields hold no colon."""
        return cls(*reason.split(":", 3)[1:])
