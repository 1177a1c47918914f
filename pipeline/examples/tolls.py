"""The toll example: its document with short windows, and what has to come of it. Pure."""

import re
from collections.abc import Iterator
from dataclasses import astuple

from pipeline.errors import BrokenInvariantError
from pipeline.examples.example import Example, Result, clock_time, columns_of
from pipeline.examples.known import Known
from pipeline.ids import BoxName
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.model import Network
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Due, Inputs
from pipeline.reference.tolls import (
    Rules,
    Sighting,
    TollNotification,
    TowDispatch,
    notifications_of,
    parse_sighting,
    tolls,
    tow_dispatches,
)

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
    known = Known(network)
    speeds = known.window(_SPEEDS)
    notified, dispatched = known.bound(NOTIFICATIONS), known.bound(DISPATCHES)
    if not isinstance(speeds, TumblingWindow):
        raise known.other(_SPEEDS)
    if notified.lower_ms != 0:
        raise known.other(NOTIFICATIONS)
    if dispatched.lower_ms != -dispatched.upper_ms:
        raise known.other(DISPATCHES)
    return Rules(window_ms=speeds.size_ms, valid_ms=notified.upper_ms, reach_ms=dispatched.upper_ms)


def due_notifications(inputs: Inputs, network: Network) -> Iterator[Due]:
    """What every moving car has to be told."""
    rules = rules_of(network)
    charged = tolls(_sightings(inputs, "tolls"), rules)
    for notification in notifications_of(_sightings(inputs, NOTIFICATIONS), charged, rules):
        yield Due(astuple(notification), notification.seen_at)


def due_dispatches(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Every vehicle that stands still with every tow truck that was there."""
    for dispatch in tow_dispatches(_sightings(inputs, DISPATCHES), rules_of(network)):
        yield Due(astuple(dispatch), max(dispatch.stopped_at, dispatch.truck_seen_at))


def told_notification(row: Row) -> str:
    """A notification for people."""
    car, toll, segment, seen_at = row
    return f"{clock_time(seen_at)}  {car} pays {toll} on segment {segment}"


def told_dispatch(row: Row) -> str:
    """A dispatch for people."""
    location, car, tow_truck, stopped_at, _ = row
    return f"{clock_time(stopped_at)}  {tow_truck} tows {car} at {location}"


def _sightings(inputs: Inputs, fragment: str) -> list[Sighting]:
    return [parse_sighting(fields) for fields in inputs.taken(fragment, "sightings")]


TOLLS = Example(
    name="tolls",
    summary="Tolls on crowded roads, and tow trucks for cars that stand still.",
    fed="sightings",
    topic="toll-notifications",
    results=(
        Result(
            box=NOTIFICATIONS,
            name="toll notifications",
            columns=columns_of(TollNotification),
            identity=("car", "segment", "seen_at"),
            due=due_notifications,
            tell=told_notification,
        ),
        Result(
            box=DISPATCHES,
            name="tow dispatches",
            columns=columns_of(TowDispatch),
            identity=("car", "tow_truck", "stopped_at", "truck_seen_at"),
            due=due_dispatches,
            tell=told_dispatch,
        ),
    ),
    adapted=with_short_windows,
)
