"""Messages about records that retention removes before a lane has used them. Pure."""

from typing import Final

from pipeline import durations
from pipeline.ids import Millis
from pipeline.lanes.expiring import Cause, ExpiringRecords, Use
from pipeline.planner.instants import instant

_NAMED: Final = 6
"""Maximum number of partitions that are named."""


def message(one: ExpiringRecords, now_ms: Millis) -> str:
    """What is removed, where, how old it is, and when.

    Args:
        one: the records.
        now_ms: the present.
    """
    where = f"topic {one.topic}, {_partitions(one.partitions)}"
    unread = one.use is Use.UNREAD
    match one.cause:
        case Cause.REMOVED if unread:
            return f"unread records were removed from {where}"
        case Cause.REMOVED:
            return f"records that a rebuild of its state would read were removed from {where}"
        case Cause.SIZE if not unread:
            return (
                f"records that a rebuild of its state would read are among the oldest of {where}, "
                "and retention.bytes removes those"
            )
        case Cause.SIZE:
            return (
                f"more than half of what {where} still has is unread, and retention.bytes removes "
                "the oldest records"
            )
        case Cause.AGE:
            what = "unread records" if unread else "records that a rebuild of its state would read"
            oldest_ms, from_ms = one.oldest_ms or now_ms, one.removed_from_ms or now_ms
            when = "now" if from_ms <= now_ms else f"from {instant(_whole(from_ms))} on"
            return (
                f"{what} of {where} are up to {_span(now_ms - oldest_ms)} old, and kept for "
                f"{_span(one.kept_ms or 0)}: they may be removed {when}"
            )


def advice(one: ExpiringRecords, fragment: str, state: str) -> str:
    """What to do about it.

    Args:
        one: the records.
        fragment: its name: `network.fragment`.
        state: as `status` shows it; empty: unknown.
    """
    action = _ACTIONS.get(state, _CAUSE).format(fragment=fragment)
    if state == "running" and one.use is Use.REBUILD:
        action = _GO_ON
    if one.cause is Cause.REMOVED:
        if one.use is Use.REBUILD:
            return f"keep its checkpoint folder, and {action}"
        name = fragment.partition(".")[2]
        return f"deploy with `--state {name}=empty` to go on without them"
    setting = "retention.bytes" if one.cause is Cause.SIZE else "retention.ms"
    return f"{action}, or raise {setting} of the topic"


_CAUSE: Final = "remove the cause of its error"
_GO_ON: Final = "let its event time go on (`medusa status` shows what it waits for)"
_ACTIONS: Final = {
    "": "let it read them by then (`medusa status` shows its state)",
    "paused": "`medusa resume {fragment}`",
    "stopping": "start it again",
    "stopped": "deploy its network again",
    "pending": "start a node (`medusa node start`)",
    "lost": "start a node (`medusa node start`)",
    "starting": "wait until it runs",
    "rebuilding": "wait until its state is rebuilt",
    "running": "see why it is behind (`medusa logs {fragment}`)",
}
"""By state; the others have an error."""


def _partitions(partitions: tuple[int, ...]) -> str:
    named = ", ".join(map(str, partitions[:_NAMED]))
    more = len(partitions) - _NAMED
    word = "partition" if len(partitions) == 1 else "partitions"
    return f"{word} {named}" + (f" and {more} more" if more > 0 else "")


def _span(ms: int) -> str:
    """A duration in its two largest units."""
    return " ".join(durations.spell(max(0, ms) // 1000 * 1000).split()[:2])


def _whole(at_ms: Millis) -> Millis:
    return Millis(at_ms // 1000 * 1000)
