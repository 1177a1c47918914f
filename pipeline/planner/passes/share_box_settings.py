"""Pass: assign `pace`, `state_limit`, `reliability` and `priority` to the fragments.

They are declared for boxes of the document. A fragment computes a box if it contains it, or an
expression of it: a box that was merged or moved has another name, and a copied one is in several
fragments. Boxes that the planner adds declare nothing.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from pipeline.availability import Availability
from pipeline.ids import BoxName, StreamName
from pipeline.names import stream_of_box
from pipeline.network.boxes.route import Branch
from pipeline.network.model import Box, BoxSettings, Network, expressions
from pipeline.planner.draft import Draft
from pipeline.planner.plan import Fragment
from pipeline.priority import Priority, highest
from pipeline.reliability import Reliability, strictest

T = TypeVar("T")


def share_box_settings(draft: Draft) -> Draft:
    """Fill in the pace, the limit of the state, the reliability and the priority of each one."""
    network = draft.network
    return replace(draft, fragments=tuple(_with_settings(f, network) for f in draft.fragments))


def _with_settings(fragment: Fragment, network: Network) -> Fragment:
    names = frozenset(_computed(fragment))
    return replace(
        fragment,
        pace_ms=_pace_ms(network, names),
        state_limit_bytes=_state_limit(network, names) if fragment.stateful_box else None,
        reliability=_reliability(network, fragment),
        priority=_priority(network, names, fragment.boxes[-1]),
    )


def declared_reliabilities(network: Network, fragment: Fragment) -> Iterator[Reliability | None]:
    """What each box of a fragment declares, or else its output; None: nothing."""
    own = {one.of: one.reliability for one in _of(network, frozenset(_computed(fragment)))}
    outputs = {output.stream: output.reliability for output in network.outputs}
    return _declared(own, outputs, fragment.boxes[-1])


def declared_availabilities(network: Network, fragment: Fragment) -> Iterator[Availability | None]:
    """The same of the availability."""
    own = {one.of: one.availability for one in _of(network, frozenset(_computed(fragment)))}
    outputs = {output.stream: output.availability for output in network.outputs}
    return _declared(own, outputs, fragment.boxes[-1])


def _computed(fragment: Fragment) -> Iterator[str]:
    """The names of the boxes of the document that a fragment computes, among other names."""
    yield from (box.name for box in fragment.boxes)
    yield from (expression.origin.box for expression in expressions(fragment.boxes))


def _pace_ms(network: Network, names: AbstractSet[str]) -> int:
    """The largest pace of the boxes; one that declares none has the network's."""
    paces = (
        network.pace_ms if settings.pace_ms is None else settings.pace_ms
        for settings in _of(network, names)
    )
    return max(paces, default=network.pace_ms)


def _state_limit(network: Network, names: AbstractSet[str]) -> int | None:
    """The least limit that the boxes declare, which are several if they were merged."""
    declared = (settings.state_limit_bytes for settings in _of(network, names))
    return min(
        (limit for limit in declared if limit is not None), default=network.state_limit_bytes
    )


def _reliability(network: Network, fragment: Fragment) -> Reliability:
    """The strictest of the boxes; one that declares none, nor its output, has the network's."""
    found = (one or network.reliability for one in declared_reliabilities(network, fragment))
    return strictest(found, default=network.reliability)


def _priority(network: Network, names: AbstractSet[str], last: Box) -> Priority:
    """The highest of the boxes; one that declares none, nor its output, has the network's."""
    own = {one.of: one.priority for one in _of(network, names)}
    outputs = {output.stream: output.priority for output in network.outputs}
    found = (one or network.priority for one in _declared(own, outputs, last))
    return highest(found, default=network.priority)


def _declared(
    own: Mapping[BoxName, T | None], outputs: Mapping[StreamName, T | None], last: Box
) -> Iterator[T | None]:
    """What each box of a fragment declares, or else its output.

    The output of a branch declares it for the fragment that ends with the branch, in which the
    route has no other purpose.

    Args:
        own: what the boxes declare.
        outputs: what the outputs declare.
        last: the last box of the fragment.
    """
    declared = {box: one or outputs.get(stream_of_box(box)) for box, one in own.items()}
    of_output = outputs.get(stream_of_box(last.name))
    if isinstance(last, Branch) and of_output is not None:
        declared[BoxName(last.input)] = of_output
    return iter(declared.values())


def _of(network: Network, names: AbstractSet[str]) -> Iterator[BoxSettings]:
    return (settings for settings in network.box_settings if settings.of in names)
