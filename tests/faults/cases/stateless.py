"""Filter and map: at most one record per input record, with its partition, key and time."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.readings import close, declared, feed, feed_spoilt, stream
from tests.faults.history import Expected, Row, Sent, Value
from tests.faults.letters import Accepted
from tests.faults.values import Columns


def number(record: Sent, name: str) -> int:
    """The value of an integer field."""
    value = dict(record.fields or {})[name]
    assert isinstance(value, int)
    return value


def text(record: Sent, name: str) -> str:
    """The value of a string field."""
    value = dict(record.fields or {})[name]
    assert isinstance(value, str)
    return value


def of_one(record: Sent, row: Row) -> Expected:
    """A result of one record; order is guaranteed per input partition."""
    place = record.place
    group: tuple[Value, ...] = (place.topic, place.partition)
    return Expected(row, number(record, "at"), (place,), (group, place.offset))


def _filtered(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = [
        of_one(r, (text(r, "sensor"), number(r, "number"), number(r, "value"), number(r, "at")))
        for r in accepted.of("even", "readings")
        if number(r, "value") % 2 == 0
    ]
    return {"even": rows}


def _mapped(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = [
        of_one(r, (text(r, "sensor"), number(r, "number"), 100 / number(r, "value")))
        for r in accepted.of("halved", "readings")
    ]
    return {"halved": rows}


FILTER = Case(
    name="filter",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  even: {filter: readings, where: value % 2 = 0}\n"
        + "outputs: {even: {topic: {name}-even, partitions: 2}}\n"
    ),
    streams=(stream(),),
    feed=feed,
    close=close,
    reference=_filtered,
    columns={"even": Columns(("sensor", "number", "value", "at"), ("number",))},
)
MAP = Case(
    name="map",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  halved: {map: readings, select: {sensor: sensor, number: number, part: 100 / value}}\n"
        + "outputs: {halved: {topic: {name}-halved, partitions: 2}}\n"
    ),
    streams=(stream(),),
    feed=feed_spoilt,
    close=close,
    reference=_mapped,
    columns={"halved": Columns(("sensor", "number", "part"), ("number",))},
)
