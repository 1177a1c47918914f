"""The sensors example, with its own producer."""

from collections.abc import Iterator
from dataclasses import asdict
from random import Random

from connectors.generators.sensors import ROOM_SIZE, TICK_MS, Calibration, Fleet, Reading
from pipeline.examples.example import columns_of
from pipeline.examples.sensors import (
    SENSORS as EXAMPLE,
)
from pipeline.examples.sensors import (
    due_earlier,
    due_levels,
    due_once,
    due_rooms,
)
from pipeline.reference.sensors import Earlier, Level, Room
from pipeline.reference.sensors import Reading as Once
from tests.faults.case import Fed
from tests.faults.cases.of_examples import Inner, Played, case_of, partition_of
from tests.faults.values import Columns

SETTLE_MS = 20_000
"""Windows of five seconds, and those of rooms after them."""
PER_SECOND = 100
"""Half of the devices' rate: event time advances at half the speed of the clock."""
DEVICES = 2 * ROOM_SIZE
CLOSING = ("closing-0", "closing-1")


def _fed(report: Reading | Calibration) -> Fed:
    key = report.device.encode()
    if isinstance(report, Calibration):
        return Fed("calibrations", partition_of(key), key, asdict(report))
    first = report.battery is None
    return Fed("readings", partition_of(key), key, asdict(report), older=first)


def _feed(random: Random, start_ms: int) -> Iterator[Fed]:
    fleet = Fleet(random.randrange(2**31), start_ms, DEVICES)
    at_ms = start_ms
    while True:
        at_ms += TICK_MS
        yield from (_fed(report) for report in fleet.reports(at_ms))


def _close(at_ms: int) -> Iterator[Fed]:
    for device in CLOSING:
        yield _fed(Reading(device, 1, 1.0, at_ms, None))
        yield _fed(Calibration(device, "nowhere", 0.0, 1.0, at_ms))


SENSORS = case_of(
    Played(
        example=EXAMPLE,
        schemas={
            "readings": "schemas/reading.avsc",
            "calibrations": "schemas/calibration.avsc",
        },
        older={"readings": "schemas/reading-1.avsc"},
        files=("alarms.py",),
        feed=_feed,
        close=_close,
        inner={
            "once": Inner(Columns(columns_of(Once), ("device", "number")), due_once),
            "rooms": Inner(Columns(columns_of(Room), ("room", "window_end")), due_rooms),
            "levels": Inner(Columns(columns_of(Level), ("device", "window_end")), due_levels),
            "earlier": Inner(Columns(columns_of(Earlier), ("device", "window_end")), due_earlier),
        },
        settle_ms=SETTLE_MS,
        per_second=PER_SECOND,
    )
)
