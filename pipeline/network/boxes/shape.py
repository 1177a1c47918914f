"""Shapes: the parameters by which event time closes a box's state and releases results.

Each stateful kind of box derives its shape in its own file; the table in `traits.py` names the
function. The rules of event time (`pipeline/boundaries`, replays, the log that a rebuild needs)
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
"""Port of a box → the inputs of its fragment whose rows reach it."""


@dataclass(frozen=True, slots=True)
class Stateless:
    """No state between batches."""

    waits, behind_ms, watermark_lead_ms = False, 0, 0


@dataclass(frozen=True, slots=True)
class Windowed:
    """Results per window and group, released when event time passes the window's end.

    A window that ends at t + 1 ms contains no time above t: a boundary of t closes it.
    """

    window: Window

    waits, behind_ms, watermark_lead_ms = True, 0, 1


@dataclass(frozen=True, slots=True)
class Sessions:
    """A result for each session and group.

    A boundary of t closes the sessions that end at or before t: a later record would be beyond
    their ends.
    """

    window: SessionWindow

    waits, behind_ms, watermark_lead_ms = True, 0, 0


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows are kept, for later partners, versions or repeats.

    Args:
        span_ms: how far before the watermark a row that still counts may be: one that waits for
            partners, or one that was the partner of a waiting row. Never negative.
        behind_ms: how far behind the watermark rows without a partner may wait; 0: none wait.
        waits: whether some rows are released by event time, besides those released by a partner.
        passing: inputs of which only waiting rows are kept: a row that event time has passed
            matches no other one.
    """

    span_ms: int
    behind_ms: int = 0
    waits: bool = False
    passing: frozenset[StreamName] = frozenset()

    watermark_lead_ms = 0


Shape = Stateless | Windowed | Sessions | Joined
"""`waits`: whether results are released because no more input for them can arrive. A missing input
holds these back, and without it they may be wrong; a box that does not wait only adds correct rows.
`behind_ms`: how far behind the watermark the output is complete, unless windows end there.
`watermark_lead_ms`: how far the watermark is above the boundary that it implements.
"""


def stateless(_box: Box, _sources: Sources) -> Shape:
    """The shape of every stateless box."""
    return Stateless()


def reach_ms(shape: Shape, of: StreamName) -> int:
    """How far before its own event time a result may depend on rows of an input."""
    match shape:
        case Stateless():
            return 0
        case Windowed(window):
            return window.size_ms
        case Sessions(window):
            return window.gap_ms + window.longest_ms
        case Joined():
            return 0 if of in shape.passing else shape.span_ms


def span_ms(shape: Shape) -> int:
    """How long after its event time a row may be released by event time; 0: none waits."""
    match shape:
        case Windowed(window):
            return window.size_ms
        case Sessions(window):
            return window.gap_ms
        case Joined() | Stateless():
            return shape.behind_ms
