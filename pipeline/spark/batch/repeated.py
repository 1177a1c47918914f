"""Whether a batch that is executed again for its state decides as it did when it was written.

A schema may have been registered or deleted since, or a function of a user decides otherwise. Then
the state is not that of what was written, and has to be built from the log.
"""

from pipeline.lanes.batch import BatchFacts, decided_otherwise
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.ports import SecondLook
from pipeline.spark.batch.rejected import refused_checksum


def judged_otherwise(marker: CommitMarker, facts: BatchFacts, inspector: SecondLook) -> str:
    """What a repeated batch decides otherwise, in words; empty: nothing.

    Args:
        marker: the one that the batch was written with.
        facts: what it gave when it was executed again.
        inspector: looks at its records a second time, if any is refused.
    """
    why = decided_otherwise(marker, facts)
    if why or marker.judged is None or not (facts.bad or facts.late):
        return why
    late_ms = facts.late_ms if facts.late else None
    again = refused_checksum(inspector.rejected(marker.start, facts.end, late_ms))
    return "" if again == marker.judged.refused else "other records are refused"
