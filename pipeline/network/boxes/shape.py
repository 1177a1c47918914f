"""Shapes: the parameters by which event time closes what a box keeps, and releases results.

Each kind of box that keeps state derives its shape in its own file; the table in `traits.py` names
the function. The rules of event time (`pipeline/boundaries`, replays, the log that a rebuild needs)
read shapes and no boxes.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pipeline.ids import StreamName
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import Window
from pipeline.network.model import Box

Sources = Mapping[str, AbstractSet[StreamName]]
"""Port of a box → the inputs of its fragment whose rows come there."""


@dataclass(frozen=True, slots=True)
class Stateless:
    """Nothing is kept from one batch to the next."""

    waits, behind_ms, watermark_lead_ms = False, 0, 0


@dataclass(frozen=True, slots=True)
class Windowed:
    """A result for each window and group, or some; it comes when event time passes the window.

    A window that ends at t + 1 ms holds no time above t: a boundary of t closes it.
    """

    window: Window

    waits, behind_ms, watermark_lead_ms = True, 0, 1


@dataclass(frozen=True, slots=True)
class Sessions:
    """A result for each session and group.

    A boundary of t closes the sessions that end at or before t: a later record would lie behind
    their ends.
    """

    window: SessionWindow

    waits, behind_ms, watermark_lead_ms = True, 0, 0


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows are kept, for partners, versions or repeats that may come.

    Args:
        span_ms: how far before the watermark a row may lie that still counts: one that waits for
            partners, or one that was the partner of a row that waits. Never negative.
        behind_ms: rows without a partner may be waiting so far behind the watermark; 0: none are.
        waits: whether there are rows that come out because event time has passed them, beside
            those that come because a partner did.
        passing: inputs of which nothing but what waits is kept: a row that event time has passed
            counts for no other one.
    """

    span_ms: int
    behind_ms: int = 0
    waits: bool = False
    passing: frozenset[StreamName] = frozenset()

    watermark_lead_ms = 0


Shape = Stateless | Windowed | Sessions | Joined
"""`waits`: whether results come out because nothing more can come for them. A missing input holds
these back, and without it they may be wrong; a box that does not wait only ever adds correct rows.
`behind_ms`: how far behind the watermark the output is complete, unless windows end there.
`watermark_lead_ms`: how far the watermark lies above the boundary that it stands for.
"""


def stateless(_box: Box, _sources: Sources) -> Shape:
    """The shape of every box that keeps nothing."""
    return Stateless()


def reach_ms(shape: Shape, of: StreamName) -> int:
    """How far before its own event time a result may reach into an input for what it is made of."""
    match shape:
        case Stateless():
            return 0
        case Windowed(window):
            return window.size_ms
        case Sessions(window):
            return window.gap_ms + window.longest_ms
        case Joined():
            return 0 if of in shape.passing else shape.span_ms
