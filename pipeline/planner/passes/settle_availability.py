"""Pass: assign `availability` to the fragments, and what the silence of their inputs means.

The least bound that a box of the fragment declares, or else its output, counts; without one, the
network's. Tentative results are matched with the stable ones by their ids. A fragment with
`amnesia` never publishes some of the stable results, and one with rollback recovery gives them ids
that no other computation of the same input gives. So neither can have a bound.

A bound means that a silent input may be one that is cut off: event time has to wait for it, and
results without it are tentative. So silence means `missing`, unless the document says otherwise. A
table that is loaded first is silent as a rule: it stays as it is.
"""

from dataclasses import replace

from pipeline.availability import Availability, tightest
from pipeline.errors import DocumentError, Problem
from pipeline.ids import FragmentName, StreamName
from pipeline.network.model import ExternalStream, Load, Network, Silence
from pipeline.planner.draft import Draft
from pipeline.planner.passes.share_box_settings import declared_availabilities
from pipeline.planner.plan import Fragment, FragmentInput
from pipeline.reliability import Mode, Recovery


def settle_availability(draft: Draft) -> Draft:
    """Fill in the availability; that of the network only where it is possible.

    Raises:
        DocumentError: a box or an output declares one where there can be none.
    """
    network, settled = draft.network, draft
    found: list[Fragment] = []
    problems: list[Problem] = []
    for fragment in draft.fragments:
        declared = _declared(network, fragment)
        bound, why = declared or network.availability, _prevented(fragment)
        if bound is not None and why:
            if declared is not None:
                problems.append(_refused(fragment, why))
            else:
                settled = settled.noting(f"{fragment.name} has no availability bound, since {why}")
            bound = None
        found.append(_with_bound(fragment, bound))
    if problems:
        raise DocumentError(tuple(problems))
    return _noting_silence(replace(settled, fragments=tuple(found)), draft.fragments)


def _declared(network: Network, fragment: Fragment) -> Availability | None:
    """The least bound that its boxes declare, or else their outputs; None: they declare none."""
    declared = declared_availabilities(network, fragment)
    return tightest((one for one in declared if one is not None), default=None)


def _prevented(fragment: Fragment) -> str:
    """Why the results of a fragment cannot be matched with tentative ones; empty: they can."""
    if fragment.reliability.mode is Mode.AMNESIA:
        return "its reliability is amnesia: results that it leaves out would stay tentative"
    if fragment.recovery is Recovery.ROLLBACK:
        return (
            "its recovery is rollback: ids of its results are those of batches, and confirm no "
            "tentative result"
        )
    return ""


def _refused(fragment: Fragment, why: str) -> Problem:
    return Problem(
        f"it cannot have an availability bound: {why}",
        box=fragment.name,
        hint="leave availability out here, or write another reliability",
    )


def _with_bound(fragment: Fragment, bound: Availability | None) -> Fragment:
    if bound is None:
        return fragment
    inputs = tuple(_without_silence(stream) for stream in fragment.inputs)
    return replace(fragment, availability=bound, inputs=inputs)


def _without_silence(stream: FragmentInput) -> FragmentInput:
    """An input whose silence means missing records, unless the document says what it means."""
    if not isinstance(stream, ExternalStream) or stream.silence_declared:
        return stream
    return stream if stream.load is Load.FIRST else replace(stream, silence=Silence.MISSING)


def _noting_silence(draft: Draft, before: tuple[Fragment, ...]) -> Draft:
    """The draft with a note for each input whose silence has another meaning under a bound."""
    inside: dict[StreamName, list[FragmentName]] = {}
    for old, new in zip(before, draft.fragments, strict=True):
        for was, now in zip(old.inputs, new.inputs, strict=True):
            if was != now:
                inside.setdefault(now.name, []).append(new.name)
    for stream, names in inside.items():
        draft = draft.noting(
            f"silence of {stream} means missing in {', '.join(names)}, for an availability bound: "
            "the document does not say silence there"
        )
    return draft
