"""An aggregate over sliding windows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.faults.cases.stateless import number, text
from tests.faults.cases.window import WINDOW
from tests.faults.history import Expected, Fate, Sent
from tests.faults.letters import Accepted

SIZE_MS = 1_000
SLIDE_MS = 400


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    closed = accepted.closed("counts")
    groups: defaultdict[tuple[str, int], list[Sent]] = defaultdict(list)
    for record in accepted.of("counts", "readings"):
        if record.fate is Fate.CLOSING:
            continue
        at_ms = number(record, "at")
        first = at_ms - at_ms % SLIDE_MS
        for start in range(first, at_ms - SIZE_MS, -SLIDE_MS):
            if start + SIZE_MS > closed.get(record.place, 0):
                groups[text(record, "sensor"), start + SIZE_MS].append(record)
    return {"counts": [_row(*group, records) for group, records in groups.items()]}


def _row(sensor: str, end: int, records: list[Sent]) -> Expected:
    values = [number(record, "value") for record in records]
    row = (sensor, end - SIZE_MS, end, len(values), sum(values), max(values))
    return Expected(row, end, tuple(record.place for record in records), ((sensor,), end))


SLIDING = replace(
    WINDOW,
    name="sliding",
    document=WINDOW.document.replace("window: 1s", "window: {size: 1s, slide: 400ms}"),
    reference=_reference,
)
