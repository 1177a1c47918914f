"""Comparison of a repeated batch with its commit marker.

A schema may have been registered or deleted since, or a user function may be nondeterministic. Then
the state does not match the written output, and must be rebuilt from the log.
"""

from pipeline.lanes.batch import BatchFacts, decided_otherwise
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.ports import BatchInspector
from pipeline.spark.batch.rejected import refused_checksum


def judged_otherwise(marker: CommitMarker, facts: BatchFacts, inspector: BatchInspector) -> str:
    """Describe how the decisions of a repeated batch differ; empty: not.

    Args:
        marker: the marker of the batch.
        facts: of the second execution.
        inspector: inspects its records, if any is refused.
    """
    why = decided_otherwise(marker, facts)
    if why or marker.judged is None or not (facts.bad or facts.late):
        return why
    late_ms = facts.late_ms if facts.late else None
    again = refused_checksum(inspector.rejected(marker.start, facts.end, late_ms))
    return "" if again == marker.judged.refused else "other records are refused"
