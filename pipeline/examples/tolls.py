"""The toll example: its document with short windows or a bound, and the expected results. Pure."""

import re
from collections.abc import Iterator
from dataclasses import astuple

from pipeline import durations
from pipeline.errors import BrokenInvariantError
from pipeline.examples.example import Bounded, Example, Result, clock_time, columns_of
from pipeline.examples.network_times import NetworkTimes
from pipeline.ids import BoxName
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.model import Network
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Due, Inputs
from pipeline.reference.tolls import (
    Rules,
    Sighting,
    Toll,
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
CHARGED = BoxName("tolls")
BOUND_MS = 3_000
_LATENESS_MS = 5_000
_APART_MS = 2_000
"""The most by which the newest sightings of two partitions differ when the feed ends."""
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


def with_bound(document: str) -> str:
    """The document with short windows, an availability bound, and the tolls as an output.

    The bound is that of the network: so every fragment waits for an input that is silent, and
    finds nothing late that is sent afterwards.

    Raises:
        BrokenInvariantError: the document has no line of its own for its window or its outputs.
    """
    short = with_short_windows(document)
    lines = f"outputs:\n  {CHARGED}: {{topic: {CHARGED}}}"
    text, count = re.subn(r"(?m)^outputs:$", lines, short)
    if count != 1:
        raise BrokenInvariantError(f"the toll document has {count} lines of outputs, not one")
    return f"{text}\navailability: {durations.format(BOUND_MS)}\n"


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the deployed network.

    Raises:
        BrokenInvariantError: the network is not the toll network.
    """
    times = NetworkTimes(network)
    speeds = times.window(_SPEEDS)
    notified, dispatched = times.bound(NOTIFICATIONS), times.bound(DISPATCHES)
    if not isinstance(speeds, TumblingWindow):
        raise times.other(_SPEEDS)
    if notified.lower_ms != 0:
        raise times.other(NOTIFICATIONS)
    if dispatched.lower_ms != -dispatched.upper_ms:
        raise times.other(DISPATCHES)
    return Rules(window_ms=speeds.size_ms, valid_ms=notified.upper_ms, reach_ms=dispatched.upper_ms)


def due_tolls(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected tolls of all segments and windows."""
    for toll in tolls(_sightings(inputs, CHARGED), rules_of(network)):
        yield Due(astuple(toll), toll.minute)


def due_notifications(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected notifications of moving cars."""
    rules = rules_of(network)
    charged = tolls(_sightings(inputs, CHARGED), rules)
    for notification in notifications_of(_sightings(inputs, NOTIFICATIONS), charged, rules):
        yield Due(astuple(notification), notification.seen_at)


def due_dispatches(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected dispatches: every stopped vehicle with every tow truck at its location."""
    for dispatch in tow_dispatches(_sightings(inputs, DISPATCHES), rules_of(network)):
        yield Due(astuple(dispatch), max(dispatch.stopped_at, dispatch.truck_seen_at))


def toll_text(row: Row) -> str:
    """A toll in a report."""
    road, segment, minute, toll = row
    return f"{clock_time(minute)}  {road}, segment {segment}: {toll}"


def notification_text(row: Row) -> str:
    """A notification in a report."""
    car, toll, segment, seen_at = row
    return f"{clock_time(seen_at)}  {car} pays {toll} on segment {segment}"


def dispatch_text(row: Row) -> str:
    """A dispatch in a report."""
    location, car, tow_truck, stopped_at, _ = row
    return f"{clock_time(stopped_at)}  {tow_truck} tows {car} at {location}"


def _sightings(inputs: Inputs, fragment: str) -> list[Sighting]:
    return [parse_sighting(fields) for fields in inputs.taken(fragment, "sightings")]


TOLL_RESULT = Result(
    box=CHARGED,
    name="tolls",
    columns=columns_of(Toll),
    identity=("road", "segment", "minute"),
    due=due_tolls,
    text=toll_text,
)
RESULTS = (
    Result(
        box=NOTIFICATIONS,
        name="toll notifications",
        columns=columns_of(TollNotification),
        identity=("car", "segment", "seen_at"),
        due=due_notifications,
        text=notification_text,
    ),
    Result(
        box=DISPATCHES,
        name="tow dispatches",
        columns=columns_of(TowDispatch),
        identity=("car", "tow_truck", "stopped_at", "truck_seen_at"),
        due=due_dispatches,
        text=dispatch_text,
    ),
)
TOLLS = Example(
    name="tolls",
    summary="Tolls on crowded roads, and tow trucks for cars that stand still.",
    fed="sightings",
    topic="toll-notifications",
    results=RESULTS,
    adapted=with_short_windows,
    bounded=Bounded(TOLL_RESULT, with_bound, BOUND_MS, -_LATENESS_MS - _APART_MS),
)
