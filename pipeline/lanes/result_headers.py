"""Headers of result records.

Outputs with `corrections: true` have `RESULT_ID` and `CORRECTION`. Of the records with one id the
last one counts; a correction without a value (a tombstone) deletes the result. All of them are in
one partition. Outputs with rollback recovery have `RESULT_ID`: the records with one id are equal.
So have those of fragments that may be tentative: a tentative result and the stable one that comes
in its place have one id.
"""

WRITTEN_TO = "medusa.topic"
"""Kafka's id of the topic that the lane wrote the result to. For readers in the network, a record
without it, or with another id, is foreign."""
RESULT_ID = "medusa.id"
CORRECTION = "medusa.correction"
"""Of a record that replaces an earlier one: its ordinal among the records of its id, in decimal."""

LATE_RESULT = "medusa.late"
"""Of a result of a stateless lane at or below the lane's promise: the promised event time in
milliseconds, in decimal. Readers decide how to handle it."""

GENERATION = "medusa.generation"
"""Of each record of a tentative topic: the fork's generation, as text."""
DONE = "medusa.done"
"""Of a done mark: the event time in milliseconds that the stable boundary has passed, as text."""

PROGRESS = "medusa.progress"
"""Of a record of a tentative topic without key and value, for the forks of fragments that read the
output: how far its generation is, see `pipeline/tentative/progress.py`. All others ignore it."""
