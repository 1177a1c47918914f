"""Pass: assign `recovery` to the fragments.

The strictest that a box of the fragment declares, or else its output, counts; without one, the
network's. Results that may come twice are no input of a fragment, whose own results would not be
exact, and are never corrected: a repetition would take the place of the correction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.errors import DocumentError, Problem
from pipeline.ids import FragmentName, TopicName
from pipeline.planner.draft import Draft
from pipeline.planner.passes.share_box_settings import declared_reliabilities
from pipeline.planner.plan import Fragment
from pipeline.reliability import UPSTREAM_BACKUP, Recovery, most_precise

_Readers = Mapping[TopicName, tuple[FragmentName, ...]]


def settle_recovery(draft: Draft) -> Draft:
    """Fill in the recovery; that of the network only where it is possible.

    Raises:
        DocumentError: a box or an output declares `rollback` where it is not.
    """
    readers = _readers(draft)
    declared = {f.name: _declared(f, draft) for f in draft.fragments}
    problems = tuple(
        problem
        for fragment in draft.fragments
        if declared[fragment.name] is Recovery.ROLLBACK
        for problem in _problems(fragment, readers)
    )
    if problems:
        raise DocumentError(problems)
    default = draft.network.reliability.recovery or Recovery.PRECISE
    return replace(
        draft,
        fragments=tuple(
            replace(fragment, recovery=declared[fragment.name] or _possible(default, of))
            for fragment in draft.fragments
            for of in (tuple(_problems(fragment, readers)),)
        ),
    )


def _possible(default: Recovery, problems: tuple[Problem, ...]) -> Recovery:
    """The network's, or `PRECISE` if that cannot be."""
    return Recovery.PRECISE if problems else default


def _declared(fragment: Fragment, draft: Draft) -> Recovery | None:
    """What its boxes and its output declare; None: nothing."""
    found = tuple(
        one
        for one in declared_reliabilities(draft.network, fragment)
        if one is not None and one.recovery is not None
    )
    return most_precise(found, UPSTREAM_BACKUP) if found else None


def _readers(draft: Draft) -> _Readers:
    found: dict[TopicName, tuple[FragmentName, ...]] = {}
    for fragment in draft.fragments:
        for stream in fragment.inputs:
            found[stream.topic] = (*found.get(stream.topic, ()), fragment.name)
    return found


def _problems(fragment: Fragment, readers: _Readers) -> Iterator[Problem]:
    """Why the results of a fragment must not come twice."""
    reading = readers.get(fragment.output.topic, ())
    if reading:
        yield Problem(
            f"recovery is rollback, but {', '.join(reading)} of this network reads the results, "
            "which may come twice",
            box=fragment.name,
            hint="write it at an output that no other fragment reads, or leave it out here",
        )
    if fragment.output.corrections:
        yield Problem(
            "recovery is rollback, but its output has corrections: a result that comes twice would "
            "take the place of its correction",
            box=fragment.name,
            hint="leave one of the two out",
        )
