"""Fragments that a deploy starts, and the reports that are older than it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.catalog.records import FragmentRecord, FragmentStatus
from pipeline.ids import Epoch, FragmentName


@dataclass(frozen=True, slots=True)
class Starts:
    """The fragments that a deploy starts.

    Args:
        names: which.
        until: the epoch up to which reports are of the plan before; left out: it had none.
    """

    names: frozenset[FragmentName]
    until: Mapping[FragmentName, Epoch]


def starts(
    before: Sequence[FragmentRecord],
    after: Sequence[FragmentRecord],
    reports: Sequence[FragmentStatus],
) -> Starts:
    """Compare what the catalog held before a deploy with what it holds now.

    Args:
        before: the fragments of the network before the deploy.
        after: those after it.
        reports: the last ones before it.
    """
    then = {record.fragment: record for record in before}
    now = {record.fragment: record for record in after}
    return Starts(
        frozenset(name for name in now if now[name] != then.get(name)),
        {
            one.fragment: one.epoch
            for one in reports
            if then.get(one.fragment) != now.get(one.fragment)
        },
    )
