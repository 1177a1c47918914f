"""The headers of results.

By the first two they are told apart, and replaced by later ones; only outputs with `corrections:
true` have them. Of the records with one id the last one counts; a correction without a value takes
the result away. All of them lie in one partition.
"""

RESULT_ID = "medusa.id"
CORRECTION = "medusa.correction"
"""Of a record that takes an earlier one's place: the how manieth of its id, as decimal text."""

LATE_RESULT = "medusa.late"
"""Of a result of a lane without state that lies at or below what the lane had promised: how far
that was, as decimal text in milliseconds. Whoever reads it decides what to do with it."""
