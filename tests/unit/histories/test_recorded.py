"""Assignment of a log's records to commit markers."""

from pipeline.ids import TopicName
from tests.faults.segments import Batch, Log, Outcome
from tests.histories.recorded import transactions

MINE, OTHER = 7, 8


def data(first: int, last: int, producer: int = MINE) -> Batch:
    """Records of a transaction; their timestamps are event times and irrelevant here."""
    return Batch(first, last, producer, 0, transactional=True, outcome=None, newest_ms=1)


def mark(at: int, at_ms: int, outcome: Outcome = Outcome.COMMIT, producer: int = MINE) -> Batch:
    """The end of a transaction."""
    return Batch(at, at, producer, 0, transactional=True, outcome=outcome, newest_ms=at_ms)


def log(topic: str, *batches: Batch) -> Log:
    """A partition with these batches."""
    return Log(TopicName(topic), 0, batches)


def test_each_record_belongs_to_the_marker_committed_with_it() -> None:
    """Markers of one transaction are a few milliseconds apart; a commit may have no records."""
    markers = log("m", data(0, 0), mark(1, 1_000), data(2, 2), mark(3, 1_100), data(4, 4))
    markers = log("m", *markers.batches, mark(5, 1_200))
    out = log("o", data(0, 2), mark(3, 1_003), data(4, 4), mark(5, 1_198))
    dead_letters = log("d", data(0, 0), mark(1, 1_201))
    found = transactions(markers, (out, dead_letters))
    assert [(one.at_ms, one.marker.offset) for one in found] == [(1_000, 0), (1_100, 2), (1_200, 4)]
    places = [[(str(p.topic), p.offset) for p in one.records] for one in found]
    assert places == [[("o", 0), ("o", 1), ("o", 2)], [], [("o", 4), ("d", 0)]]


def test_aborted_and_foreign_records_are_excluded() -> None:
    """Two fragments may have written the same topic, one after the other."""
    markers = log("m", data(0, 0), mark(1, 1_000, Outcome.ABORT), data(2, 2), mark(3, 1_100))
    out = log(
        "o",
        *(data(0, 0), mark(1, 1_000, Outcome.ABORT)),
        *(data(2, 2, OTHER), mark(3, 1_050, producer=OTHER)),
        *(data(4, 5), mark(6, 1_101)),
    )
    (found,) = transactions(markers, (out,))
    assert found.marker.offset == 2
    assert [place.offset for place in found.records] == [4, 5]


def test_an_open_transaction_is_excluded() -> None:
    """A transaction without an end is not committed."""
    assert transactions(log("m", data(0, 0)), (log("o", data(0, 3)),)) == ()
