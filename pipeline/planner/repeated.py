"""Topics in which results may come twice, and fragments that are not to use them. Pure."""

from collections.abc import Collection, Iterator

from pipeline.errors import Problem
from pipeline.ids import TopicName
from pipeline.planner.plan import DerivedStream, Plan
from pipeline.reliability import Recovery


def repeated_topics(old: Plan | None, written: Collection[TopicName]) -> frozenset[TopicName]:
    """The topics that a plan with rollback recovery writes, and those that one has written.

    A lane of `old` may still do so, or have done so since `written` was read.
    """
    fragments = () if old is None else old.fragments
    now = {one.output.topic for one in fragments if one.recovery is Recovery.ROLLBACK}
    return frozenset({*written, *now})


def read_repeated(new: Plan, topics: Collection[TopicName]) -> Iterator[Problem]:
    """The fragments of a plan that would read one: they count each record."""
    for fragment in new.fragments:
        for stream in fragment.inputs:
            if isinstance(stream, DerivedStream) and stream.topic in topics:
                yield Problem(
                    f"it reads {stream.name}, whose topic {stream.topic} was written with recovery "
                    "rollback: results in it may come twice, also from now on",
                    box=fragment.name,
                    hint=f"give {stream.name} another topic in `outputs`",
                )


def corrected_repeated(new: Plan, topics: Collection[TopicName]) -> Iterator[Problem]:
    """The fragments of a plan that would correct results in one.

    Results of a batch that was cut may be there by the ids of its cut, and come again by others.
    """
    for fragment in new.fragments:
        if fragment.output.corrections and fragment.output.topic in topics:
            yield Problem(
                f"its output has corrections, and its topic {fragment.output.topic} was written "
                "with recovery rollback: results in it have other ids, and may come twice",
                box=fragment.name,
                hint=f"give {fragment.output.name} another topic in `outputs`",
            )
