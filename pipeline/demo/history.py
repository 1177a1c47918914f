"""What the producer says it delivered, and what the reference says must follow from it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.reference.compare import Comparison, Row, compare
from pipeline.reference.tolls import (
    Rules,
    Sighting,
    TollNotification,
    TowDispatch,
    parse_sighting,
    toll_notifications,
    tow_dispatches,
)

NOTIFICATION_COLUMNS = tuple(field.name for field in fields(TollNotification))
DISPATCH_COLUMNS = tuple(field.name for field in fields(TowDispatch))


@dataclass(frozen=True, slots=True)
class History:
    """Everything that was fed."""

    sightings: tuple[Sighting, ...]

    @property
    def last_ms(self) -> Millis | None:
        """The largest event time; None if nothing was fed."""
        return Millis(max((s.seen_at for s in self.sightings), default=0)) or None


def read_history(path: Path) -> History:
    """Read the producer's record file: one JSON object a line, `value` is the sighting.

    Raises:
        BrokenInvariantError: a line is not such an object.
    """
    with path.open(encoding="utf-8") as lines:
        return History(tuple(_sightings(lines, str(path))))


def judge(
    history: History, rules: Rules, notifications: Iterable[Row], dispatches: Iterable[Row]
) -> tuple[Comparison, Comparison]:
    """Compare all notifications and all dispatches that came with what the reference computes."""
    return (
        compare(
            "toll notifications",
            NOTIFICATION_COLUMNS,
            ("car", "segment", "seen_at"),
            (astuple(n) for n in toll_notifications(history.sightings, rules)),
            notifications,
        ),
        compare(
            "tow dispatches",
            DISPATCH_COLUMNS,
            ("car", "tow_truck", "stopped_at", "truck_seen_at"),
            (astuple(d) for d in tow_dispatches(history.sightings, rules)),
            dispatches,
        ),
    )


def _sightings(lines: Iterable[str], file: str) -> Iterator[Sighting]:
    for number, line in enumerate(lines, start=1):
        try:
            yield parse_sighting(json.loads(line)["value"])
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenInvariantError(
                "this is not a record of a delivery", place=f"{file}:{number}"
            ) from error
