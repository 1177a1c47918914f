"""Options with several parts. Each field is a key of the document."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Duration = str | timedelta
"""A duration: `"500ms"`, `"5s"`, `"1m"`, `"7d"`, or a timedelta of whole milliseconds.

Inside a box the word `"window"` denotes the window of the network.
"""

Size = str
"""A size in bytes: `"512B"`, `"16KiB"`, `"64MiB"`, `"4GiB"`, `"1TiB"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Windows of one size.

    Args:
        size: size of each window.
        slide: distance of their starts; tumbling windows, if left out.
        offset: their shift from 1970-01-01T00:00:00Z; shorter than the slide.
    """

    size: Duration
    slide: Duration | None = None
    offset: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Session windows of records that follow each other within a gap.

    Args:
        gap: maximum distance from one record to the next one of the same session.
        longest: sessions are cut at multiples of it since 1970-01-01T00:00:00Z; `"1d"`, if left
            out.
    """

    gap: Duration
    longest: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Bounds on the distance of a pair's event times. A bound that is left out is `"0s"`.

    Args:
        before: how long before the right row the left one may be.
        after: how long after the right row the left one may be.
    """

    before: Duration | None = None
    after: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The accepted number of dead letters of a stream or a box; one more stops the fragment.

    Args:
        stop_above: the accepted number; with 0, the first one stops the fragment.
        within: size of the windows in which they are counted; without it, all are counted.
    """

    stop_above: int
    within: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The nodes that a network, a box or an output runs on. What is left out is not restricted.

    Args:
        nodes: what their labels have to be: `"zone=a"`, `"zone=a|b"`, `"zone!=a"`, `"zone"`, or
            several of these with commas between.
        apart: names of boxes that are to run on other nodes; of a network, each on another one.
    """

    nodes: str | None = None
    apart: Sequence[str] | None = None


ReliabilityMode = Literal["amnesia", "upstream_backup", "passive_standby", "active_standby"]
"""What other nodes have done when a node fails: nothing, and a lost state is not built again, or it
is; or some have copied the checkpoint, or repeated the batches."""


RecoveryKind = Literal["precise", "rollback"]
"""What a reader sees of a failure: nothing, or results that come twice, with one id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How another node goes on with a network, a box or an output when its own one fails.

    Args:
        mode: `upstream_backup`, another node builds the state from the log; `passive_standby`, one
            goes on from a copy of the checkpoint; `active_standby`, one that follows it goes on;
            `amnesia`, another one begins without state, and leaves out what depends on the lost.
        secondaries: with a standby, the number of other nodes that are one, 1 to 5; 1 if left out.
        checkpoint_every: with `passive_standby`, how often the checkpoint is copied: a duration
            from 1s to 1d; 10s if left out.
        recovery: `precise`, a failure is hidden; `rollback`, results are visible sooner, and some
            may come twice after a failure; the network's, or `precise`, if left out.
    """

    mode: ReliabilityMode
    secondaries: int | None = None
    checkpoint_every: Duration | None = None
    recovery: RecoveryKind | None = None


PriorityLevel = Literal["high", "normal", "low"]
"""Which fragments run while the nodes have too little room for all: those of the highest first."""


AvailabilityPolicy = Literal["process", "delay", "suspend"]
"""What happens when input has been missing for the whole bound: tentative results as soon as the
input that is there allows; or each after the whole bound; or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """When tentative results of a network, an output or a box are preferred to none.

    Args:
        bound: the delay, added to the usual one, that is accepted before: from 1ms to 1d.
        policy: what happens then; `process`, if left out.
    """

    bound: Duration
    policy: AvailabilityPolicy | None = None


Part = Window | Session | Within | Limit | Placement | Reliability | Availability
"""An option that becomes a mapping with a key for each field."""
