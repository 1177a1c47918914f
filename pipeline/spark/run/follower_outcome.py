"""What a follower compares: the outcome of a batch that it has repeated, with its marker."""

from typing import Final

from pipeline.ids import BoxName
from pipeline.lanes.batch import UNLIKE, BatchFacts
from pipeline.lanes.following import UnlikeOwnerError
from pipeline.lanes.repairs import Difference
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.ports import BatchInspector
from pipeline.spark.batch.repeated import judged_otherwise, other_results
from pipeline.spark.batch.results import Results
from pipeline.spark.query.lowered import Call, Lowered

_OTHER_CAUSES: Final = (
    "no box of it calls user code: a schema may have been registered or deleted between the two "
    "executions; else keep the topics, and report this"
)


def difference(
    at: CommitMarker,
    marker: CommitMarker,
    facts: BatchFacts,
    results: Results,
    inspector: BatchInspector,
    lowered: Lowered,
) -> Difference | None:
    """How the outcome of a batch differs; None: not.

    Args:
        at: the marker before it.
        marker: its marker.
        facts: of its execution.
        results: of its execution.
        inspector: inspects its records, if any is refused.
        lowered: the plan that has executed it.
    """
    if dict(facts.end) != dict(marker.end):
        return Difference("it ends elsewhere")
    if why := judged_otherwise(marker, facts, inspector):
        return Difference(why)
    why = other_results(at, marker, results, lowered)
    return Difference(why, is_of_results=True) if why else None


def user_code(lowered: Lowered) -> tuple[BoxName, ...]:
    """The boxes of a fragment that call user code, which may not be deterministic."""
    steps = [step for path in lowered.paths for step in path.steps] + [*lowered.after]
    return tuple(dict.fromkeys(step.box for step in steps if isinstance(step, Call)))


def unlike(
    marker: CommitMarker, found: Difference, lowered: Lowered, repairs: int, place: str
) -> UnlikeOwnerError:
    """The error of a follower whose batch has another outcome; it names the boxes that may do it.

    Args:
        marker: of the batch.
        found: how it differs.
        lowered: the plan that has executed it.
        repairs: how many repairs in a row have not helped; 0: it is the first difference.
        place: names the fragment.
    """
    text = f"batch {marker.batch} of incarnation {marker.incarnation} has another outcome here"
    if not repairs:
        return UnlikeOwnerError(f"{text}: {found.why}", place=place)
    boxes = user_code(lowered)
    suspects = "box " + " or ".join(boxes) if boxes else ""
    named = f"; {suspects} is not deterministic" if boxes else ""
    return UnlikeOwnerError(
        f"{text}, also after {repairs} repairs in a row: {found.why}{named}",
        place=place,
        hint=UNLIKE if boxes else _OTHER_CAUSES,
    )
