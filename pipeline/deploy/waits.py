"""Availability bounds below the waits that were measured of the same inputs. Pure.

A fragment waits at least as long for its external inputs as one that reads some of them: so readers
count that read no other ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline import durations
from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.counting import counted
from pipeline.ids import FragmentId, TopicName
from pipeline.lanes.fork_phases import Measured, waits_ms
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment, Plan

_SECOND_MS = 1_000
_TIMES = 3
"""A bound that is advised is so many times the usual wait."""


@dataclass(frozen=True, slots=True)
class MeasuredReader:
    """A running fragment whose waits were measured.

    Args:
        id: of the fragment.
        topics: of its external inputs.
        waits: that were measured.
    """

    id: FragmentId
    topics: frozenset[TopicName]
    waits: UsualWaits


def external_topics(fragment: Fragment) -> frozenset[TopicName]:
    """The topics of the external inputs of a fragment."""
    return frozenset(one.topic for one in fragment.inputs if isinstance(one, ExternalStream))


def too_tight(plan: Plan, readers: Iterable[MeasuredReader]) -> Iterator[str]:
    """Warnings about bounds after which results are tentative although nothing is missing.

    Args:
        plan: what is wanted.
        readers: the fragments of the participant whose waits were measured, of this network too.
    """
    known = tuple(readers)
    for fragment in plan.fragments:
        bound, topics = fragment.availability, external_topics(fragment)
        found = [one for one in known if one.topics and one.topics <= topics]
        if bound is None or not fragment.may_be_tentative or not found:
            continue
        slowest = max(found, key=lambda one: (one.waits.usual_ms, one.id))
        waits, after_ms = slowest.waits, waits_ms(bound, Measured())
        if waits.usual_ms < after_ms:
            continue
        advised_ms = -(-_TIMES * waits.usual_ms // _SECOND_MS) * _SECOND_MS
        yield (
            f"{fragment.name} has availability {durations.format(bound.bound_ms)}, so it publishes "
            f"tentative results after {durations.spell(after_ms)}; but {slowest.id} usually waits "
            f"up to {durations.spell(waits.usual_ms)} for the last partition of the same input (in "
            f"95 % of {counted(waits.minutes, 'minute')} no longer, "
            f"{durations.spell(waits.longest_ms)} at most): results would be tentative without a "
            f"failure; write {durations.format(advised_ms)} or more"
        )
