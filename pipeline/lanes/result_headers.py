"""The headers of result records.

Only outputs with `corrections: true` have `RESULT_ID` and `CORRECTION`. Of the records with one id
the last one counts; a correction without a value takes the result away. All of them lie in one
partition.
"""

WRITTEN_TO = "medusa.topic"
"""Of each result of a lane: Kafka's id of the topic that the lane has written it to. Readers in the
network take a record without it, or with another id, for one that somebody else has written."""
RESULT_ID = "medusa.id"
CORRECTION = "medusa.correction"
"""Of a record that takes an earlier one's place: the how manieth of its id, as decimal text."""

LATE_RESULT = "medusa.late"
"""Of a result of a lane without state that lies at or below what the lane had promised: how far
that was, as decimal text in milliseconds. Whoever reads it decides what to do with it."""
