"""Full, left and right outer joins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tests.faults.case import Case
from tests.faults.cases.join import close, event_ms, feed, pairs
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import number, text
from tests.faults.history import Expected, Fate, Row, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

BEFORE_MS, AFTER_MS = 200, 600
JOINED = "left: one, right: other, on: [sensor, kind], within: {before: 200ms, after: 600ms}"
SELECTED = "one: left.number, other: right.number"
EXCHANGED = "left: other, right: one, on: [sensor, kind], within: {before: 600ms, after: 200ms}"
EXCHANGED_SELECTED = "one: right.number, other: left.number"
COLUMNS = Columns(("sensor", "kind", "one", "other"), ("one", "other"))
KINDS = 20
"""Kinds of readings per sensor: about half of the readings have no partner within the bound."""


def kind(record: Sent) -> tuple[str, int]:
    """The kind of a reading."""
    return text(record, "sensor"), number(record, "value") % KINDS


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    return {"either": _full(_of(accepted, "lefts", "left"), _of(accepted, "rights", "right"))}


def _full(lefts: Sequence[Sent], rights: Sequence[Sent]) -> list[Expected]:
    """The results of a full join of two streams."""
    found = list(pairs(lefts, rights, BEFORE_MS, AFTER_MS, kind))
    paired = {record.place for pair in found for record in pair}
    rows = [
        Expected(
            (*kind(left), number(left, "number"), number(right, "number")),
            event_ms((left, right)),
            (left.place, right.place),
        )
        for left, right in found
    ]
    alone: list[tuple[Sent, Row]] = [(left, (number(left, "number"), None)) for left in lefts]
    alone += [(right, (None, number(right, "number"))) for right in rights]
    rows += [
        Expected((*kind(record), *numbers), number(record, "at"), (record.place,))
        for record, numbers in alone
        if record.place not in paired
    ]
    return rows


def _left_reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    """The same without unmatched right rows."""
    return {"either": _having("one", _reference(accepted)["either"])}


def _right_reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    """The same without unmatched left rows; each stream is at the other port."""
    found = _full(_of(accepted, "lefts", "right"), _of(accepted, "rights", "left"))
    return {"either": _having("other", found)}


def _having(column: str, expected: Iterable[Expected]) -> list[Expected]:
    """The results in which a column is not null."""
    at = COLUMNS.names.index(column)
    return [one for one in expected if one.row[at] is not None]


def _of(accepted: Accepted, stream: str, port: str) -> list[Sent]:
    """Accepted records, without closing ones, which never have results."""
    found = accepted.of("either", stream, port)
    return [record for record in found if record.fate is not Fate.CLOSING]


OUTER_JOIN = Case(
    name="outer_join",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + "  one: {map: lefts, select: {sensor: sensor, kind: value % 20, number: number}}\n"
        + "  other: {map: rights, select: {sensor: sensor, kind: value % 20, number: number}}\n"
        + "  either:\n"
        + f"    join: {{{JOINED}, how: full}}\n"
        + f"    select: {{sensor: sensor, kind: kind, {SELECTED}}}\n"
        + "outputs: {either: {topic: {name}-either, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_reference,
    columns={"either": COLUMNS},
)
LEFT_JOIN = replace(
    OUTER_JOIN,
    name="left_join",
    document=OUTER_JOIN.document.replace("how: full", "how: left"),
    reference=_left_reference,
)
RIGHT_JOIN = replace(
    OUTER_JOIN,
    name="right_join",
    document=OUTER_JOIN.document.replace(f"{JOINED}, how: full", f"{EXCHANGED}, how: left").replace(
        SELECTED, EXCHANGED_SELECTED
    ),
    reference=_right_reference,
)
"""A right outer join: the language has left ones only, so the sides are exchanged."""
