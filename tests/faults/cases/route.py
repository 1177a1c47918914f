"""route: each record to one of several streams, or to none if a condition fails."""

from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.readings import close, declared, feed_spoilt, stream
from tests.faults.cases.stateless import number, of_one, text
from tests.faults.history import Expected, Row, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

NAMES = ("sensor", "number", "value", "at")
BRANCHES = ("small", "even", "rest")


def branch(record: Sent) -> str:
    """The branch of a record; for a value of 0 the first condition fails."""
    value = number(record, "value")
    if 1_000 / value > 10:
        return "small"
    return "even" if value % 2 == 0 else "rest"


def _row(record: Sent) -> Row:
    values = (number(record, name) for name in NAMES[1:])
    return text(record, "sensor"), *values


def _routed(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    return {
        name: [of_one(r, _row(r)) for r in accepted.of(name, "readings") if branch(r) == name]
        for name in BRANCHES
    }


ROUTE = Case(
    name="route",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  by_value:\n"
        + "    route: readings\n"
        + "    to: {small: 1000 / value > 10, even: value % 2 = 0}\n"
        + "    otherwise: rest\n"
        + "outputs:\n"
        + "  small: {topic: {name}-small, partitions: 2}\n"
        + "  even: {topic: {name}-even, partitions: 2}\n"
        + "  rest: {topic: {name}-rest, partitions: 2}\n"
    ),
    streams=(stream(),),
    feed=feed_spoilt,
    close=close,
    reference=_routed,
    columns={name: Columns(NAMES, ("number",)) for name in BRANCHES},
)
