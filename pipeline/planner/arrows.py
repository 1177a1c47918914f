"""Arrows between fragments that a deploy makes or removes: streams through topics. Pure.

A placement, or an output, makes one inside of what was a fragment; the same undone removes it.
"""

from dataclasses import dataclass

from pipeline.ids import FragmentName, TopicName
from pipeline.network.model import ExternalStream
from pipeline.planner.cost import READ_AND_WRITE_US
from pipeline.planner.describe import start_text
from pipeline.planner.plan import Fragment, Plan

ARROW_US = READ_AND_WRITE_US
"""Estimated processor time for each record of an arrow: it is written and read once more."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream from one fragment to another one.

    Args:
        writer: the fragment that writes it.
        reader: a fragment that reads it.
        topic: which carries it.
        is_new: whether the deploy makes it; otherwise it removes it.
    """

    writer: FragmentName
    reader: FragmentName
    topic: TopicName
    is_new: bool

    def __str__(self) -> str:
        more = "more" if self.is_new else "less"
        return (
            f"topic {self.topic}: about {ARROW_US} µs of processor time {more} for each of its "
            f"records, by estimate, and {'one batch later' if self.is_new else 'no batch between'}"
        )


def changed_arrows(new: Plan, old: Plan | None) -> tuple[Arrow, ...]:
    """The arrows that a deploy makes, then those that it removes; none of a first deploy."""
    if old is None:
        return ()
    after, before = _arrows(new), _arrows(old)
    made = [Arrow(*pair, topic, True) for pair, topic in after.items() if pair not in before]
    gone = [Arrow(*pair, topic, False) for pair, topic in before.items() if pair not in after]
    return (*made, *gone)


def _arrows(plan: Plan) -> dict[tuple[FragmentName, FragmentName], TopicName]:
    """Writer and reader of each arrow between fragments, in the order of the plan."""
    return {
        (writer.name, reader.name): writer.output.topic
        for writer in plan.fragments
        for reader in plan.fragments
        if any(stream.name == writer.output.name for stream in reader.inputs)
    }


def state_elsewhere(fragment: Fragment, old: Plan | None) -> FragmentName | None:
    """The deployed fragment of another name that computes its box with state; None: none does."""
    box = fragment.stateful_box
    if box is None or old is None:
        return None
    names = (one.name for one in old.fragments if box.name in {b.name for b in one.boxes})
    return next((name for name in names if name != fragment.name), None)


def state_left(fragment: Fragment, other: FragmentName, *, has_run: bool) -> str:
    """What becomes of a state that another fragment has made.

    Args:
        fragment: that has the box now.
        other: that had it.
        has_run: whether the fragment itself has run before.
    """
    box = fragment.stateful_box
    text = f"the state that fragment {other} has of box {box.name if box else ''} is not taken over"
    if has_run:
        return text
    starts = (
        f"{stream.name} (`{start_text(stream.start)}`)"
        if isinstance(stream, ExternalStream)
        else f"{stream.name} (all of it)"
        for stream in fragment.inputs
    )
    return f"{text}: it is computed again, from the start of {', '.join(starts)}"
