"""Hidden columns of a row inside a query, and the reasons in `__reason`."""

from dataclasses import dataclass

from pipeline.lanes.dead_letter_reasons import Reason

PREFIX = "__"
"""Prefix of all hidden columns, and of no user column."""
TOPIC = "__topic"
PARTITION = "__partition"
OFFSET = "__offset"
KEY = "__key"
VALUE = "__value"
KAFKA_TIME = "__kafka_time"
HEADERS = "__headers"
HEADER_HANDLE = "__told"
"""Header that may contain the schema prefix of a value."""
FRAMED = "__framed"
"""A value with its schema prefix, also if a header contains it; null in a derived stream's record
that no lane has written."""
HANDLE = "__handle"
"""The schema prefix."""
ROW = "__row"
EVENT_TIME = "__event_time"
REASON = "__reason"
EVENT_MS = "__event_ms"
"""Event time in milliseconds; after boxes a column only where rows are counted."""
UNREAD = "__unread"
"""First bytes of the value of an unfit record, with its schema prefix; else null. This and the next
are columns only where rows are counted."""
ORIGIN = "__origin"
"""Topic of a record: an index in `Lowered.origins`; null in rows that do not count."""
PROGRESS = "__progress"
"""Event time in milliseconds of the stream's own valid records; else null."""
REDRIVEN = "__redriven"
"""The same of valid redriven records."""
WATERMARK = "__watermark"
SPAN = "__span"
"""Start of the span of event time in which rows of a join are compared; see `joined.py`."""
ID = "__id"
"""Id of a result; a column only if the output can be corrected."""
RECORD = "__record"
"""The record of a row, for the dead letter of a result that cannot be computed; see
`places.record`. A column only of the rows of an as-of join."""
HELD = "__held"
"""Encoded table version of a row. Before the join: the version with which the row was redriven,
empty if none matched; else null. In a result: the matching version."""
ANSWERED = "__answered"
"""Whether a result's row was redriven with its version."""
POSITION = "__position"
POSITION_FIELDS = ("topic", "partition", "offset", "path")
"""Unique place of a row, to break ties; a column only where it is needed."""

FAILED_ON = "__failed_on"
"""Inputs of a result that could not be computed, as JSON; a column only after a stateful box."""
GIVEN = "__given"
"""Input of a failed function call; a temporary column."""

PLACE = (TOPIC, PARTITION, OFFSET)
"""Identity of a record, for paths with functions."""
ORIGINAL = (TOPIC, PARTITION, OFFSET, KEY, VALUE, KAFKA_TIME, HEADERS)
"""Columns of a dead letter."""
PASSED = (PARTITION, KEY)
"""Columns of a record by which a stateless lane places its result."""


NO_RESULT = "no_result"
"""Value of `__reason` for a valid record without a result: a filter dropped it, or its array is
empty. Only where rows are counted: `counted.py`."""
SKIPPED = "skipped"
"""The event time of the record was settled before its source was first read. Only there."""
UNFIT = "unfit"
"""The record is invalid; inspection finds the reason. Only there."""
UNKNOWN_SCHEMA = "unknown_schema"
"""The query was planned without that schema. It must be looked up: if it exists, the batch is
aborted and run again with it; if not, the record is refused with SCHEMA_NOT_FOUND."""


def reason_of(word: str) -> Reason:
    """The reason of a word in `__reason`, once unknown schemas turned out to be missing."""
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
        """Parse the text of `str`; names of boxes and fields contain no colon."""
        return cls(*reason.split(":", 3)[1:])
