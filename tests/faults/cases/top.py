"""The top rows of windows, with many ties."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.faults.cases.stateless import number, text
from tests.faults.cases.window import WINDOW, WINDOW_MS, windows
from tests.faults.history import Expected, Place, Sent
from tests.faults.letters import Accepted
from tests.faults.values import Columns

ROWS = 2
COLUMNS = Columns(
    ("sensor", "window_start", "window_end", "rank", "number", "value"),
    ("sensor", "window_end", "rank"),
)


def _place(record: Sent) -> tuple[int, int, Place]:
    """Sort key of a row in its window and group."""
    return number(record, "value") % 10, number(record, "at"), record.place


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    rows = []
    for (sensor, end), records in windows(accepted.of("best", "readings"), WINDOW_MS).items():
        for rank, record in enumerate(sorted(records, key=_place, reverse=True)[:ROWS], 1):
            assert text(record, "sensor") == sensor
            found = (number(record, "number"), number(record, "value"))
            row = (sensor, end - WINDOW_MS, end, rank, *found)
            rows.append(Expected(row, end, (record.place,), ((sensor,), end)))
    return {"best": rows}


TOP = replace(
    WINDOW,
    name="top",
    document=(
        WINDOW.document.partition("boxes:")[0]
        + "boxes:\n"
        + "  best:\n"
        + "    top: readings\n"
        + f"    rows: {ROWS}\n"
        + "    highest: value % 10\n"
        + "    window: 1s\n"
        + "    by: [sensor]\n"
        + "    select: [number, value]\n"
        + "outputs: {best: {topic: {name}-best, partitions: 2}}\n"
    ),
    reference=_reference,
    columns={"best": COLUMNS},
)
