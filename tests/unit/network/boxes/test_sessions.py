import pytest

from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.sessions import SessionWindow
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts

DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize(
    ("session", "window"),
    [
        ("30s", SessionWindow(30_000, DAY_MS)),
        ("{gap: 30s}", SessionWindow(30_000, DAY_MS)),
        ("{gap: 2d, longest: 7d}", SessionWindow(2 * DAY_MS, 7 * DAY_MS)),
    ],
)
def test_a_session_has_a_gap_and_a_maximum_length(
    session: str, window: SessionWindow, box_of: BoxOf
) -> None:
    """The default length is a day; columns, event time and key are as of windows."""
    box = box_of(
        f"  b: {{aggregate: s, session: {session}, by: [car], compute: {{n: count(*)}}}}\n"
    )
    assert isinstance(box, Aggregate)
    assert box.window == window
    assert column_texts(box) == [
        "car STRING NOT NULL",
        "window_start TIMESTAMP NOT NULL",
        "window_end TIMESTAMP NOT NULL",
        "n BIGINT NOT NULL",
    ]
    assert (box.event_time_column, box.key) == ("window_end", ("car",))


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ("session: 0s", "must be at least 1ms"),
        ("session: soon", "'soon' is not a duration"),
        ("session:", "session of box b has no value"),
        ("session: {longest: 1h}", "session of box b needs gap"),
        ("session: {gap: 1m, longst: 1h}", "has no key longst (there is: longest, gap)"),
        ("session: {gap: soon}", "gap of session of box b: 'soon' is not a duration"),
        ("session: soon", "session of box b: 'soon' is not a duration"),
        ("session: {gap: 1h, longest: 1h}", "is not shorter than the longest one, 1h"),
        ("session: 1d", "the gap of a session, 1d, is not shorter than the longest one, 1d"),
        ("session: window", "the document has none at its top"),
        ("session: {gap: 1m, slide: 1s}", "session of box b has no key slide"),
        ("session: 1m, window: 1m", "box b has window and session, and only one of them can be"),
    ],
)
def test_invalid_sessions_are_refused(session: str, message: str, errors_of: ErrorsOf) -> None:
    """Among them those that could never close."""
    reported = errors_of(f"  b: {{aggregate: s, {session}, compute: {{n: count(*)}}}}\n")
    assert len(reported) == 1
    assert message in reported[0]
