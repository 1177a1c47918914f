"""Comparison of a repeated batch with its commit marker.

A schema may have been registered or deleted since, or a user function may be nondeterministic. Then
the state does not match the written output, and must be rebuilt from the log.
"""

from pipeline.lanes.batch import BatchFacts, decided_otherwise
from pipeline.lanes.following import results_of
from pipeline.lanes.gaps import withheld_ms
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.ports import BatchInspector
from pipeline.spark.batch.rejected import refused_checksum
from pipeline.spark.batch.results import Results
from pipeline.spark.query.lowered import Call, Lowered


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


def other_results(
    at: CommitMarker, marker: CommitMarker, results: Results, lowered: Lowered
) -> str:
    """Describe how the results of a repeated batch differ; empty: not.

    Their contents are not compared if a user function computes them from those of the state: it may
    depend on the time, and the state does not depend on it.

    Args:
        at: the marker before the batch.
        marker: that of the batch.
        results: of the second execution.
        lowered: the fragment.
    """
    results = results.above(withheld_ms(lowered.shape, at.gap))
    now, was = results.computed().table.num_rows, results_of(at, marker)
    if now != was:
        return f"results: {now}, not {was}"
    written = None if marker.judged is None else marker.judged.results
    if written is None or any(isinstance(step, Call) for step in lowered.after):
        return ""
    return "" if results.checksum == written else "the results have other values"
