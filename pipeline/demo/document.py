"""The demo's network: the toll project's own document with short windows, and its times. Pure."""

import re

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BoxName
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.join import Join
from pipeline.network.model import Network
from pipeline.reference.tolls import Rules

WINDOW = "10s"
NOTIFICATIONS = BoxName("toll_notifications")
DISPATCHES = BoxName("tow_dispatch")
_SPEEDS = BoxName("average_speed")


def with_short_windows(document: str) -> str:
    """The document with `window: 10s` instead of its one minute; nothing else changes.

    >>> with_short_windows("window: 1m")
    'window: 10s'

    Raises:
        BrokenInvariantError: the document does not set its window in one line of its own.
    """
    text, count = re.subn(r"(?m)^window: 1m$", f"window: {WINDOW}", document)
    if count != 1:
        raise BrokenInvariantError(f"the toll document sets its window {count} times, not once")
    return text


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the network that was really deployed.

    Raises:
        BrokenInvariantError: the network is not the toll network.
    """
    boxes = {box.name: box for box in network.boxes}
    speeds, notifications, dispatches = (
        boxes.get(name) for name in (_SPEEDS, NOTIFICATIONS, DISPATCHES)
    )
    if not (
        isinstance(speeds, Aggregate)
        and isinstance(notifications, Join)
        and isinstance(dispatches, Join)
        and speeds.window.offset_ms == 0
        and notifications.bound.lower_ms == 0
        and dispatches.bound.lower_ms == -dispatches.bound.upper_ms
    ):
        raise BrokenInvariantError(f"network {network.name} is not the one the reference knows")
    return Rules(
        window_ms=speeds.window.size_ms,
        valid_ms=notifications.bound.upper_ms,
        reach_ms=dispatches.bound.upper_ms,
    )
