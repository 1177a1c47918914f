"""The sensors example: expected results of its readings and calibrations. Pure."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass

from pipeline.examples.example import Example, Result, clock_time, columns_of, due_by
from pipeline.examples.network_times import NetworkTimes
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
"""For the results of the last readings, and the silence after them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The times of the network, in ms.

    Args:
        repeat_ms: maximum distance of a reading and its repeat.
        valid_ms: maximum age of a calibration.
        statistics_ms: size of the windows of statistics.
        gap_ms: duration after which a device is silent.
        level_ms: size of the windows of levels.
        known_ms: maximum age of the level that another one is compared with.
    """

    repeat_ms: int
    valid_ms: int
    statistics_ms: int
    gap_ms: int
    level_ms: int
    known_ms: int


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the deployed network.

    Raises:
        BrokenInvariantError: the network is not the sensors network.
    """
    times = NetworkTimes(network)
    statistics_ms, level_ms = (_end_to_end(times, name) for name in ("statistics", "levels"))
    if _end_to_end(times, "rooms") != statistics_ms:
        raise times.other("rooms")
    heard, beside = times.session("heard"), times.bound("beside")
    if heard.longest_ms != DAY_MS:
        raise times.other("heard")
    if not beside.lower_ms == beside.upper_ms == -statistics_ms:
        raise times.other("beside")
    if _end_to_end(times, "earlier") != level_ms:
        raise times.other("earlier")
    return Rules(
        times.within("once"),
        times.within("calibrated"),
        statistics_ms,
        heard.gap_ms,
        level_ms,
        times.within("compared"),
    )


def _end_to_end(times: NetworkTimes, name: str) -> int:
    """The size of tumbling windows."""
    window = times.window(name)
    if window.slide_ms != window.size_ms:
        raise times.other(name)
    return window.size_ms


def due_drifts(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Expected drifts of devices from their rooms."""
    rules = rules_of(network)
    for drift in drifts(_statistics(inputs, rules), _rooms(inputs, rules)):
        yield Due(astuple(drift), drift.at + rules.statistics_ms)


def due_silences(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Expected silences of devices."""
    rules = rules_of(network)
    for silence in silences(_once(inputs, rules), rules.gap_ms):
        yield Due(astuple(silence), silence.since + rules.gap_ms)


def due_alarms(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Expected changes of levels."""
    rules = rules_of(network)
    found = _levels(inputs, rules)
    for alarm in alarms(found, earlier(found, rules.level_ms), rules.known_ms):
        yield Due(astuple(alarm), alarm.at)


def calibrated_text(row: Row) -> str:
    """A reading in a report."""
    device, number, room, value, _, measured_at = row
    return f"{clock_time(measured_at)}  {device} in {room}: {value} degrees ({number})"


def statistics_text(row: Row) -> str:
    """A device's statistics in a report."""
    room, device, _, window_end, readings, lost, mean, *_ = row
    return f"{clock_time(window_end)}  {device} in {room}: {mean} of {readings}, {lost} lost"


def drift_text(row: Row) -> str:
    """A drift in a report."""
    device, room, at, mean, typical = row
    return f"{clock_time(at)}  {device} drifts: {mean}, but {typical} in {room}"


def silence_text(row: Row) -> str:
    """A silence in a report."""
    device, since, readings = row
    return f"{clock_time(since)}  {device} falls silent after {readings} readings"


def alarm_text(row: Row) -> str:
    """An alarm in a report."""
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
"""The statistics of each device."""
due_rooms = due_by(_rooms, rules_of, "window_end")
"""The typical values of each room."""
due_levels = due_by(_levels, rules_of, "window_end")
"""Whether it was too hot."""
due_earlier = due_by(_earlier, rules_of, "window_end")
"""The same levels, a second later."""

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
            text=calibrated_text,
        ),
        Result(
            box=BoxName("statistics"),
            name="statistics of devices",
            columns=columns_of(Statistics),
            identity=("device", "window_end"),
            due=due_statistics,
            text=statistics_text,
        ),
        Result(
            box=BoxName("drifts"),
            name="drifts",
            columns=columns_of(Drift),
            identity=("device", "at"),
            due=due_drifts,
            text=drift_text,
        ),
        Result(
            box=BoxName("silences"),
            name="silences",
            columns=columns_of(Silence),
            identity=("device", "since"),
            due=due_silences,
            text=silence_text,
        ),
        Result(
            box=BoxName("alarms"),
            name="alarms",
            columns=columns_of(Alarm),
            identity=("device", "at"),
            due=due_alarms,
            text=alarm_text,
        ),
    ),
    settle_ms=SETTLE_MS,
)
