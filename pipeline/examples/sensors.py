"""The sensors example: what has to come of its readings and calibrations. Pure."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass

from pipeline.examples.example import Example, Result, clock_time, columns_of, due_by
from pipeline.examples.known import Known
from pipeline.ids import BoxName
from pipeline.network.model import Network
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Due, Inputs
from pipeline.reference.sensors import (
    DAY_MS,
    Alarm,
    Calibrated,
    Drift,
    Earlier,
    Level,
    Reading,
    Room,
    Silence,
    Statistics,
    alarms,
    calibrated,
    drifts,
    earlier,
    levels,
    once,
    parse_calibration,
    parse_reading,
    rooms,
    silences,
    statistics,
)

SETTLE_MS = 12_000
"""What the last readings lead to, and the silence after them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The times of the network, in ms.

    Args:
        repeat_ms: how far apart a reading and its repeat may lie.
        valid_ms: how old a calibration may be.
        statistics_ms: how long the windows of statistics are.
        gap_ms: after how long a device is silent.
        level_ms: how long the windows of levels are.
        known_ms: how old a level may be that another one is compared with.
    """

    repeat_ms: int
    valid_ms: int
    statistics_ms: int
    gap_ms: int
    level_ms: int
    known_ms: int


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the network that was really deployed.

    Raises:
        BrokenInvariantError: the network is not the sensors network.
    """
    known = Known(network)
    statistics_ms, level_ms = (_end_to_end(known, name) for name in ("statistics", "levels"))
    if _end_to_end(known, "rooms") != statistics_ms:
        raise known.other("rooms")
    heard, beside = known.session("heard"), known.bound("beside")
    if heard.longest_ms != DAY_MS:
        raise known.other("heard")
    if not beside.lower_ms == beside.upper_ms == -statistics_ms:
        raise known.other("beside")
    if _end_to_end(known, "earlier") != level_ms:
        raise known.other("earlier")
    return Rules(
        known.within("once"),
        known.within("calibrated"),
        statistics_ms,
        heard.gap_ms,
        level_ms,
        known.within("compared"),
    )


def _end_to_end(known: Known, name: str) -> int:
    """How long windows are of which each begins with the end of another one."""
    window = known.window(name)
    if window.slide_ms != window.size_ms:
        raise known.other(name)
    return window.size_ms


def due_drifts(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Devices that show something else than their room."""
    rules = rules_of(network)
    for drift in drifts(_statistics(inputs, rules), _rooms(inputs, rules)):
        yield Due(astuple(drift), drift.at + rules.statistics_ms)


def due_silences(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Devices that fell silent."""
    rules = rules_of(network)
    for silence in silences(_once(inputs, rules), rules.gap_ms):
        yield Due(astuple(silence), silence.since + rules.gap_ms)


def due_alarms(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Where that changes."""
    rules = rules_of(network)
    found = _levels(inputs, rules)
    for alarm in alarms(found, earlier(found, rules.level_ms), rules.known_ms):
        yield Due(astuple(alarm), alarm.at)


def told_calibrated(row: Row) -> str:
    """A reading for people."""
    device, number, room, value, _, measured_at = row
    return f"{clock_time(measured_at)}  {device} in {room}: {value} degrees ({number})"


def told_statistics(row: Row) -> str:
    """A device's statistics for people."""
    room, device, _, window_end, readings, lost, mean, *_ = row
    return f"{clock_time(window_end)}  {device} in {room}: {mean} of {readings}, {lost} lost"


def told_drift(row: Row) -> str:
    """A drift for people."""
    device, room, at, mean, typical = row
    return f"{clock_time(at)}  {device} drifts: {mean}, but {typical} in {room}"


def told_silence(row: Row) -> str:
    """A silence for people."""
    device, since, readings = row
    return f"{clock_time(since)}  {device} falls silent after {readings} readings"


def told_alarm(row: Row) -> str:
    """An alarm for people."""
    device, at, state, value = row
    return f"{clock_time(at)}  {device} is {state}: {value}"


def _once(inputs: Inputs, rules: Rules) -> list[Reading]:
    found = (parse_reading(fields) for fields in inputs.taken("once", "readings"))
    return once(found, rules.repeat_ms)


def _calibrated(inputs: Inputs, rules: Rules) -> list[Calibrated]:
    taken = inputs.taken("calibrated", "calibrations", "right")
    versions = (parse_calibration(fields) for fields in taken)
    return calibrated(_once(inputs, rules), versions, rules.valid_ms)


def _statistics(inputs: Inputs, rules: Rules) -> list[Statistics]:
    return statistics(_calibrated(inputs, rules), rules.statistics_ms)


def _rooms(inputs: Inputs, rules: Rules) -> list[Room]:
    return rooms(_statistics(inputs, rules), rules.statistics_ms)


def _levels(inputs: Inputs, rules: Rules) -> list[Level]:
    return levels(_calibrated(inputs, rules), rules.level_ms)


def _earlier(inputs: Inputs, rules: Rules) -> list[Earlier]:
    return earlier(_levels(inputs, rules), rules.level_ms)


due_once = due_by(_once, rules_of, "measured_at")
"""The readings without their repeats."""
due_calibrated = due_by(_calibrated, rules_of, "measured_at")
"""Readings in degrees."""
due_statistics = due_by(_statistics, rules_of, "window_end")
"""What each device showed."""
due_rooms = due_by(_rooms, rules_of, "window_end")
"""What is typical of each room."""
due_levels = due_by(_levels, rules_of, "window_end")
"""Whether it was too hot."""
due_earlier = due_by(_earlier, rules_of, "window_end")
"""The same, a second later."""

SENSORS = Example(
    name="sensors",
    summary="Calibrated readings of sensors, their statistics, alerts of drift, silence and heat.",
    fed="readings and calibrations",
    topic="alarms",
    results=(
        Result(
            box=BoxName("calibrated"),
            name="calibrated readings",
            columns=columns_of(Calibrated),
            identity=("device", "number"),
            due=due_calibrated,
            tell=told_calibrated,
        ),
        Result(
            box=BoxName("statistics"),
            name="statistics of devices",
            columns=columns_of(Statistics),
            identity=("device", "window_end"),
            due=due_statistics,
            tell=told_statistics,
        ),
        Result(
            box=BoxName("drifts"),
            name="drifts",
            columns=columns_of(Drift),
            identity=("device", "at"),
            due=due_drifts,
            tell=told_drift,
        ),
        Result(
            box=BoxName("silences"),
            name="silences",
            columns=columns_of(Silence),
            identity=("device", "since"),
            due=due_silences,
            tell=told_silence,
        ),
        Result(
            box=BoxName("alarms"),
            name="alarms",
            columns=columns_of(Alarm),
            identity=("device", "at"),
            due=due_alarms,
            tell=told_alarm,
        ),
    ),
    settle_ms=SETTLE_MS,
)
