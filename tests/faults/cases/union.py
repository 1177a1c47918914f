"""Unions, stateless and before windows."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.join import close, feed
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import number, of_one, text
from tests.faults.cases.window import COLUMNS, counted
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

EVEN = "  even: {filter: rights, where: value % 2 = 0}\n"


def _both(fragment: str, accepted: Accepted) -> list[Sent]:
    """Records of the union; a record has one path only."""
    lefts, rights = accepted.of(fragment, "lefts"), accepted.of(fragment, "rights")
    return [*lefts, *(record for record in rights if number(record, "value") % 2 == 0)]


def _passed(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = [
        of_one(r, (text(r, "sensor"), number(r, "number"), number(r, "value"), number(r, "at")))
        for r in _both("both", accepted)
    ]
    return {"both": rows}


def _counted(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    return {"counts": counted(_both("counts", accepted))}


UNION = Case(
    name="union",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + EVEN
        + "  both: {union: [lefts, even]}\n"
        + "outputs: {both: {topic: {name}-both, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_passed,
    columns={
        "both": Columns(("sensor", "number", "value", "at"), ("sensor", "number", "value", "at"))
    },
)
UNION_WINDOW = Case(
    name="union_window",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + EVEN
        + "  both: {union: [lefts, even]}\n"
        + "  counts:\n"
        + "    aggregate: both\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    compute: {n: count(*), total: sum(value), most: max(value)}\n"
        + "outputs: {counts: {topic: {name}-counts, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_counted,
    columns={"counts": COLUMNS},
)
