"""Pass: which derived streams may be read in their tentative state, by forks further downstream.

A fork reads tentative records of an input from a cut on, in place of the stable ones. So the
results of the input's writer have to come in the order of event time: those of windows and sessions
do. Other results come when their partners do, before or after a cut.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.ids import StreamName
from pipeline.network.boxes.shape import Sessions, Windowed
from pipeline.planner.draft import Draft
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput


def follow_tentative(draft: Draft) -> Draft:
    """Mark these streams where they are written and read; note where a chain ends."""
    writers = {one.output.name: one for one in draft.fragments}
    followed = {
        stream
        for one in draft.fragments
        if one.may_be_tentative
        for stream in one.derived
        if _is_followed(writers.get(stream))
    }
    for one in draft.fragments:
        for stream, why in _not_followed(one, writers):
            draft = draft.noting(
                f"{one.name} has no tentative results for what is missing before {stream}: {why}"
            )
    fragments = tuple(_marked(one, followed) for one in draft.fragments)
    return replace(draft, fragments=fragments)


def _is_followed(writer: Fragment | None) -> bool:
    """Whether the tentative results of a fragment can be read on from a cut."""
    in_order = writer is not None and isinstance(writer.shape, Windowed | Sessions)
    return in_order and writer is not None and writer.may_be_tentative


def _not_followed(
    fragment: Fragment, writers: Mapping[StreamName, Fragment]
) -> Iterator[tuple[StreamName, str]]:
    """The inputs of a bounded fragment that stay stable though something before may be missing."""
    if not fragment.may_be_tentative:
        return
    for stream in sorted(fragment.derived):
        writer = writers.get(stream)
        if writer is None or _is_followed(writer):
            continue
        box = writer.stateful_box or writer.boxes[-1]
        if writer.may_be_tentative:
            yield stream, f"forks read tentative results of windows, and {box.name} is {box.kind}"
        elif any(_may_be_tentative(one, writers) for one in writer.derived):
            yield stream, f"{box.kind} {box.name} waits for stable input"


def _may_be_tentative(stream: StreamName, writers: Mapping[StreamName, Fragment]) -> bool:
    """Whether a stream, or one that it is computed from, may have tentative results."""
    writer = writers.get(stream)
    if writer is None:
        return False
    return writer.may_be_tentative or any(_may_be_tentative(s, writers) for s in writer.derived)


def _marked(fragment: Fragment, followed: set[StreamName]) -> Fragment:
    def marked(stream: FragmentInput) -> FragmentInput:
        if not isinstance(stream, DerivedStream) or stream.name not in followed:
            return stream
        return replace(stream, tentative=fragment.may_be_tentative)

    output = replace(fragment.output, tentative=fragment.output.name in followed)
    return replace(fragment, inputs=tuple(map(marked, fragment.inputs)), output=output)
