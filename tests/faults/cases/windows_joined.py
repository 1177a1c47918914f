"""Three fragments: the windows of two streams, joined by group and end."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.join import close, feed
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import number
from tests.faults.cases.window import windows
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

WINDOW_MS = 1_000
SUM = Columns(("sensor", "window_end", "total"), ("sensor", "window_end"))


def _total(records: Iterable[Sent]) -> int:
    return sum(number(record, "value") for record in records)


def _sums(found: Mapping[tuple[str, int], list[Sent]]) -> list[Expected]:
    return [
        Expected(
            (sensor, end, _total(records)),
            end,
            tuple(record.place for record in records),
            ((sensor,), end),
        )
        for (sensor, end), records in found.items()
    ]


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    one = windows(accepted.of("left_sums", "lefts"), WINDOW_MS)
    other = windows(accepted.of("right_sums", "rights"), WINDOW_MS)
    both = [
        Expected(
            (sensor, end, _total(one[sensor, end]), _total(other[sensor, end])),
            end,
            tuple(r.place for r in (*one[sensor, end], *other[sensor, end])),
        )
        for sensor, end in one.keys() & other.keys()
    ]
    return {"left_sums": _sums(one), "right_sums": _sums(other), "both": both}


WINDOWS_JOINED = Case(
    name="windows_joined",
    document=(
        "network: {name}\n"
        "window: 1s\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + "  left_windows: {aggregate: lefts, by: [sensor], compute: {total: sum(value)}}\n"
        + "  left_sums: {map: left_windows, select: [sensor, window_end, total]}\n"
        + "  right_windows: {aggregate: rights, by: [sensor], compute: {total: sum(value)}}\n"
        + "  right_sums: {map: right_windows, select: [sensor, window_end, total]}\n"
        + "  both:\n"
        + "    join: {left: left_sums, right: right_sums, on: [sensor, window_end]}\n"
        + "    select: {sensor: sensor, window_end: window_end, one: left.total, "
        + "other: right.total}\n"
        + "outputs: {both: {topic: {name}-both, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_reference,
    columns={
        "left_sums": SUM,
        "right_sums": SUM,
        "both": Columns(("sensor", "window_end", "one", "other"), ("sensor", "window_end")),
    },
)
