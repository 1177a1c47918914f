"""Values of a description that have several parts. Each field is a key of the document."""

from dataclasses import dataclass
from datetime import timedelta

Duration = str | timedelta
"""A length of time: `"500ms"`, `"5s"`, `"1m"`, `"7d"`, or a timedelta of whole milliseconds.

Inside a box the word `"window"` stands for the window of the network.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Windows of one size.

    Args:
        size: how long each is.
        slide: how far apart they begin; they lie end to end, if left out.
        offset: how far they are moved from 1970-01-01T00:00:00Z; shorter than the slide.
    """

    size: Duration
    slide: Duration | None = None
    offset: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Sessions of records that lie close together.

    Args:
        gap: how far from one record to the next one of the same session, at most.
        longest: a session is cut at multiples of it since 1970-01-01T00:00:00Z; `"1d"`, if left
            out.
    """

    gap: Duration
    longest: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """How far apart the event times of a pair may lie. What is left out is `"0s"`.

    Args:
        before: how long before the right row the left one may lie.
        after: how long after the right row the left one may lie.
    """

    before: Duration | None = None
    after: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many dead letters of a stream or a box are borne; one more stops the fragment.

    Args:
        stop_above: so many are borne; with 0, the first one stops the fragment.
        within: they are counted in windows of this size; without it, all that ever came are.
    """

    stop_above: int
    within: Duration | None = None


Part = Window | Session | Within | Limit
"""What is written as a mapping with a key for each field."""
