"""Pass: which derived streams may be read in their tentative state, by forks further downstream.

A fork reads tentative records of an input from a cut on, in place of the stable ones. So a boundary
has to separate the results of the input's writer: those that event time releases are. Pairs of a
join come when both rows are there, before or after a cut; and of a union of several inputs one may
be ahead of the others.

A box without state, or an inner join, is never wrong by itself: it is tentative only if it reads
what is. So one that reads external streams alone ends a chain before it begins.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.ids import StreamName
from pipeline.planner.draft import Draft
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput


def follow_tentative(draft: Draft) -> Draft:
    """Mark these streams where they are written and read; note where a chain ends."""
    writers: dict[StreamName, Fragment] = {}
    for one in draft.fragments:  # in topological order
        writers[one.output.name] = _reading(one, writers)
    followed = frozenset[StreamName]().union(*(one.read_early for one in writers.values()))
    for one in writers.values():
        for stream, why in _not_followed(one, writers):
            draft = draft.noting(
                f"{one.name} has no tentative results for what is missing before {stream}: {why}"
            )
    fragments = tuple(_marked(one, followed) for one in writers.values())
    return replace(draft, fragments=fragments)


def _reading(fragment: Fragment, writers: Mapping[StreamName, Fragment]) -> Fragment:
    """A fragment that reads tentative results of its inputs, where there are some to be read."""

    def read(stream: FragmentInput) -> FragmentInput:
        if not isinstance(stream, DerivedStream):
            return stream
        return replace(stream, tentative=_is_followed(writers.get(stream.name)))

    return (
        replace(fragment, inputs=tuple(map(read, fragment.inputs)))
        if fragment.is_bounded
        else fragment
    )


def _is_followed(writer: Fragment | None) -> bool:
    """Whether the tentative results of a fragment can be read on from a cut."""
    return writer is not None and writer.may_be_tentative and writer.in_order


def _not_followed(
    fragment: Fragment, writers: Mapping[StreamName, Fragment]
) -> Iterator[tuple[StreamName, str]]:
    """The inputs of a bounded fragment that stay stable though something before may be missing."""
    if not fragment.is_bounded:
        return
    for stream in sorted(fragment.derived - fragment.read_early):
        writer = writers.get(stream)
        if writer is None:
            continue
        box = writer.stateful_box or writer.boxes[-1]
        if writer.may_be_tentative:
            yield stream, f"results of {box.kind} {box.name} do not come in the order of event time"
        elif any(_may_be_tentative(one, writers) for one in writer.derived):
            yield stream, f"{box.kind} {box.name} waits for stable input"
        elif writer.is_bounded and not writer.shape.waits:
            yield (
                stream,
                f"{box.kind} {box.name} is never tentative, and waits for all of its input",
            )


def _may_be_tentative(stream: StreamName, writers: Mapping[StreamName, Fragment]) -> bool:
    """Whether a stream, or one that it is computed from, may have tentative results."""
    writer = writers.get(stream)
    if writer is None:
        return False
    return writer.may_be_tentative or any(_may_be_tentative(s, writers) for s in writer.derived)


def _marked(fragment: Fragment, followed: frozenset[StreamName]) -> Fragment:
    output = replace(fragment.output, tentative=fragment.output.name in followed)
    return replace(fragment, output=output)
