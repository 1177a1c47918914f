"""Aggregate functions that are independent of row order, or depend on a defined order."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.faults.cases.readings import declared
from tests.faults.cases.stateless import number
from tests.faults.cases.window import WINDOW, WINDOW_MS, windows
from tests.faults.history import Expected
from tests.faults.letters import Accepted
from tests.faults.values import Columns
from tests.unit.planner.aggregating import Seen, aggregated

KINDS = 10
"""Readings are compared by one digit, so that most windows have ties."""

RESULTS = ("opened", "closed", "lowest", "highest", "most", "spread")


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = []
    groups = windows(accepted.of("summaries", "readings"), WINDOW_MS)
    for (sensor, end), records in groups.items():
        numbers, values = (
            [
                Seen((number(r, "at"), r.place), number(r, name), number(r, "value") % KINDS)
                for r in records
            ]
            for name in ("number", "value")
        )
        spread = aggregated("stddev_pop", values)
        row = (
            sensor,
            end - WINDOW_MS,
            end,
            *(aggregated(function, numbers) for function in ("first", "last", "min_by", "max_by")),
            aggregated("percentile", values, ("0.9",)),
            round(spread, 6),
        )
        rows.append(Expected(row, end, tuple(r.place for r in records), ((sensor,), end)))
    return {"summaries": rows}


AGGREGATES = replace(
    WINDOW,
    name="aggregates",
    document=(
        "network: {name}\n"
        + declared("readings")
        + "boxes:\n"
        + "  summaries:\n"
        + "    aggregate: readings\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    compute:\n"
        + "      opened: first(number)\n"
        + "      closed: last(number)\n"
        + f"      lowest: min_by(number, value % {KINDS})\n"
        + f"      highest: max_by(number, value % {KINDS})\n"
        + "      most: percentile(value, 0.9)\n"
        + "      spread: round(stddev_pop(value), 6)\n"
        + "outputs: {summaries: {topic: {name}-summaries, partitions: 2}}\n"
    ),
    reference=_reference,
    columns={
        "summaries": Columns(
            ("sensor", "window_start", "window_end", *RESULTS), ("sensor", "window_end")
        )
    },
)
