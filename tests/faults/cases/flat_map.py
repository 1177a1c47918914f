"""flat_map: all rows of a record or none, in its partition; and windows over them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from pipeline.ids import FragmentName
from tests.faults.case import Case
from tests.faults.cases.readings import close, declared, feed, feed_spoilt, stream
from tests.faults.cases.stateless import number, text
from tests.faults.cases.window import COLUMNS, counted
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

PARTS_MAX = 10
"""More than the parts of any value."""
EACH = "each: {part: \"split(CAST(value AS STRING), '[37]')\"}"


def parts(record: Sent) -> list[str]:
    """The parts of a value, split at each digit 3 and 7; at least one."""
    return str(number(record, "value")).replace("7", "3").split("3")


def _rows(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = []
    for record in accepted.of("parts", "readings"):
        place, share = record.place, 100 / number(record, "value")
        for at, part in enumerate(parts(record)):
            row = (text(record, "sensor"), number(record, "number"), at, part, share)
            order = ((place.topic, place.partition), place.offset * PARTS_MAX + at)
            rows.append(Expected(row, number(record, "at"), (place,), order))
    return {"parts": rows}


def _counts(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    parted = [(r, part) for r in accepted.of("parts", "readings") for part in parts(r)]
    late = Counter(
        (fields["sensor"], fields["value"], fields["part"], at_ms)
        for fields, at_ms in accepted.late.get(FragmentName("counts"), ())
    )
    in_time = []
    for record, part in parted:
        key = text(record, "sensor"), number(record, "value"), part, number(record, "at")
        if late[key]:
            late[key] -= 1
        else:
            in_time.append(record)
    rows = [
        Expected((text(r, "sensor"), number(r, "value"), part), number(r, "at"), (r.place,))
        for r, part in parted
    ]
    return {"parts": rows, "counts": counted(in_time)}


FLAT_MAP = Case(
    name="flat_map",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  parts:\n"
        + "    flat_map: readings\n"
        + f"    {EACH}\n"
        + "    at: n\n"
        + "    select: {sensor: sensor, number: number, n: n, part: part, share: 100 / value}\n"
        + "outputs: {parts: {topic: {name}-parts, partitions: 2}}\n"
    ),
    streams=(stream(),),
    feed=feed_spoilt,
    close=close,
    reference=_rows,
    columns={"parts": Columns(("sensor", "number", "n", "part", "share"), ("number", "n"))},
)
FLAT_MAP_WINDOW = Case(
    name="flat_map_window",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  parts:\n"
        + "    flat_map: readings\n"
        + f"    {EACH}\n"
        + "    select: [sensor, value, part]\n"
        + "  counts:\n"
        + "    aggregate: parts\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    compute: {n: count(*), total: sum(value), most: max(value)}\n"
        + "outputs: {counts: {topic: {name}-counts, partitions: 2}}\n"
    ),
    streams=(stream(),),
    feed=feed,
    close=close,
    reference=_counts,
    columns={
        "parts": Columns(("sensor", "value", "part"), ("sensor", "value", "part")),
        "counts": COLUMNS,
    },
)
