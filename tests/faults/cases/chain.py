"""Two fragments: a window over the output of a join."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.faults.case import Case
from tests.faults.cases.join import COLUMNS, PAIRS, close, event_ms, feed, pairs
from tests.faults.cases.readings import declared, stream
from tests.faults.cases.stateless import number, text
from tests.faults.history import Expected, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

WINDOW_MS = 2_000


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    found = list(
        pairs(accepted.of("pairs", "lefts", "left"), accepted.of("pairs", "rights", "right"))
    )
    groups: defaultdict[tuple[str, int], list[tuple[Sent, Sent]]] = defaultdict(list)
    rows = []
    for pair in found:
        left, right = pair
        at_ms, sensor = event_ms(pair), text(left, "sensor")
        groups[sensor, at_ms - at_ms % WINDOW_MS + WINDOW_MS].append(pair)
        values = (sensor, number(left, "number"), number(right, "number"))
        rows.append(Expected(values, at_ms, (left.place, right.place)))
    sums = [
        Expected(
            (sensor, end, len(of_it), sum(number(left, "number") for left, _ in of_it)),
            end,
            tuple(left.place for left, _ in of_it),
            ((sensor,), end),
        )
        for (sensor, end), of_it in groups.items()
    ]
    return {"pairs": rows, "sums": sums}


CHAIN = Case(
    name="chain",
    document=(
        "network: {name}\n"
        + declared("lefts", "rights")
        + "boxes:\n"
        + PAIRS
        + "  windows:\n"
        + "    aggregate: pairs\n"
        + "    window: 2s\n"
        + "    by: [sensor]\n"
        + "    compute: {n: count(*), total: sum(one)}\n"
        + "  sums: {map: windows, select: [sensor, window_end, n, total]}\n"
        + "outputs: {sums: {topic: {name}-sums, partitions: 2}}\n"
    ),
    streams=(stream("lefts"), stream("rights")),
    feed=feed,
    close=close,
    reference=_reference,
    columns={
        "pairs": COLUMNS,
        "sums": Columns(("sensor", "window_end", "n", "total"), ("sensor", "window_end")),
    },
)
