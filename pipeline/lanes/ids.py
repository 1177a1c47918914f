"""The headers by which results are told apart, and replaced by later ones.

Only outputs with `corrections: true` have them. Of the records with one id the last one counts; a
correction without a value takes the result away. All of them lie in one partition.
"""

RESULT_ID = "medusa.id"
CORRECTION = "medusa.correction"
"""Of a record that takes an earlier one's place: the how manieth of its id, as decimal text."""
