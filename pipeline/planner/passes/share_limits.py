"""Pass: assign the limits of dead letters to the fragments.

A box of the document may be computed in a fragment under another name, where boxes were merged or
moved, and in several fragments, where it was copied. An expression contains its original box, and
so does a dead letter; limits refer to that box. Each fragment counts separately.
"""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.network.boxes.traits import Provenance, traits
from pipeline.network.model import ExternalStream, expressions
from pipeline.planner.draft import Draft
from pipeline.planner.plan import Fragment


def share_limits(draft: Draft) -> Draft:
    """Fill in the limits of the fragments, in the order of the document."""
    limits = draft.network.limits
    if not limits:
        return draft
    fragments = []
    for fragment in draft.fragments:
        names = frozenset(_refusing(fragment))
        own = tuple(limit for limit in limits if limit.of in names)
        fragments.append(replace(fragment, limits=own))
    return replace(draft, fragments=tuple(fragments))


def _refusing(fragment: Fragment) -> Iterator[str]:
    """Every name under which a fragment rejects records: its external inputs, and its boxes."""
    for stream in fragment.inputs:
        if isinstance(stream, ExternalStream):
            yield stream.name
    for expression in expressions(fragment.boxes):
        yield expression.origin.box
    for box in fragment.boxes:
        if traits(box).provenance is Provenance.CALLED:
            yield box.name
