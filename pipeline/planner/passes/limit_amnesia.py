"""Pass: let no fragment leave results out that a fragment with state reads.

A fragment with state computes wrong results if its input lacks some, and nothing says which. So
`amnesia` of the network has an effect on the last fragments with state alone.
"""

from dataclasses import replace

from pipeline.ids import StreamName
from pipeline.planner.draft import Draft
from pipeline.planner.plan import Fragment
from pipeline.reliability import UPSTREAM_BACKUP, Mode


def limit_amnesia(draft: Draft) -> Draft:
    """Give fragments with state that others with state read the default reliability instead."""
    settled = draft
    found: list[Fragment] = []
    for fragment in draft.fragments:
        reader = None
        if fragment.reliability.mode is Mode.AMNESIA and fragment.stateful_box is not None:
            reader = _with_state_behind(fragment, draft.fragments)
        if reader is None:
            found.append(fragment)
            continue
        found.append(replace(fragment, reliability=UPSTREAM_BACKUP))
        settled = settled.noting(
            f"{fragment.name} has {UPSTREAM_BACKUP} instead of {fragment.reliability}, since "
            f"{reader.name} keeps state of its results, and would be wrong without some of them"
        )
    return replace(settled, fragments=tuple(found))


def _with_state_behind(fragment: Fragment, fragments: tuple[Fragment, ...]) -> Fragment | None:
    """The first fragment with state that reads it, directly or through others; None: none does."""
    reached: set[StreamName] = {fragment.output.name}
    grown = True
    while grown:
        grown = False
        for one in fragments:
            if one.output.name in reached or not reached & one.derived:
                continue
            if one.stateful_box is not None:
                return one
            reached.add(one.output.name)
            grown = True
    return None
