"""An aggregate over sessions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tests.faults.cases.stateless import number, text
from tests.faults.cases.window import WINDOW
from tests.faults.history import Expected, Fate, Sent
from tests.faults.letters import Accepted

GAP_MS = 100
LONGEST_MS = 2_000


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    groups: defaultdict[tuple[str, int], list[Sent]] = defaultdict(list)
    for record in accepted.of("counts", "readings"):
        if record.fate is not Fate.CLOSING:
            groups[text(record, "sensor"), number(record, "at") // LONGEST_MS].append(record)
    return {
        "counts": [
            _row(sensor, session)
            for (sensor, _), records in groups.items()
            for session in _sessions(records)
        ]
    }


def _sessions(records: list[Sent]) -> Iterator[list[Sent]]:
    session: list[Sent] = []
    for record in sorted(records, key=lambda r: number(r, "at")):
        if session and number(record, "at") - number(session[-1], "at") > GAP_MS:
            yield session
            session = []
        session.append(record)
    yield session


def _row(sensor: str, records: list[Sent]) -> Expected:
    start, end = number(records[0], "at"), number(records[-1], "at") + GAP_MS
    values = [number(record, "value") for record in records]
    row = (sensor, start, end, len(values), sum(values), max(values))
    return Expected(row, end, tuple(record.place for record in records), ((sensor,), end))


SESSIONS = replace(
    WINDOW,
    name="sessions",
    document=WINDOW.document.replace("window: 1s", "session: {gap: 100ms, longest: 2s}"),
    reference=_reference,
)
