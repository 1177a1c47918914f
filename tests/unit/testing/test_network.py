from collections.abc import Iterator

import pytest

from pipeline.errors import BrokenInvariantError, MedusaError, RetryError
from pipeline.ids import Millis, StreamName
from pipeline.spark.query.lowered import Lowered
from pipeline.testing.check import UNDATED, Checked, streams_of
from pipeline.testing.document import time_of
from pipeline.testing.lane import RunningQuery, Write
from pipeline.testing.network import NetworkUnderTest
from pipeline.testing.records import Schemas
from pipeline.testing.steps import Sent
from schemas.codec import encode, from_json
from schemas.json_value import number_of, text_of
from schemas.wire import join
from tests.unit.testing.twins import DOCUMENT, Toys, network

SIGHTINGS, COUNTS, BUSY, MOVING = map(StreamName, ("sightings", "counts", "busy", "moving"))


class Bench:
    """A network under test, with a short notation for records."""

    def __init__(self, text: str = DOCUMENT, partitions: int = 1) -> None:
        self.streams = streams_of(network(text), (COUNTS,))
        self.schemas = Schemas()
        topics = {self.streams.topics[SIGHTINGS]: partitions}
        self.toys = Toys()
        checked = Checked(self.streams, self.schemas, {}, topics, ())
        self.network = NetworkUnderTest(checked, self.toys)

    def send(self, *rows: tuple[str, str], partition: int = 0, speed: float = 1.0) -> None:
        """Send (car, time of day) pairs."""
        schema = self.streams.external[SIGHTINGS]
        made = [
            join(
                self.schemas.id_of(schema.text),
                encode(schema, from_json(schema, {"car": car, "speed": speed, "at": at(time)})),
            )
            for car, time in rows
        ]
        self.network.send(SIGHTINGS, [Sent(v, None, partition, UNDATED) for v in made])

    def advance(self, time: str) -> None:
        """Advance event time to a time of day."""
        self.network.advance(time_of(at(time)))

    def counts(self, stream: StreamName = COUNTS) -> list[tuple[str, int]]:
        """The counts that were emitted."""
        return [
            (text_of(c.shown["car"]), number_of(c.shown["n"])) for c in self.network.take(stream)
        ]


def at(time: str) -> str:
    """A time of day of the one day on which all tests happen."""
    return f"2026-01-01T{time}Z"


@pytest.fixture
def bench() -> Iterator[Bench]:
    """The network of the test doubles, one partition."""
    made = Bench()
    yield made
    made.network.close()


def test_results_are_returned_once(bench: Bench) -> None:
    """In the order of the topic; the next call begins where this one ended."""
    bench.send(("a", "00:00:01"), ("b", "00:00:02"))
    assert [came.value["car"] for came in bench.network.take(MOVING)] == ["a", "b"]
    assert not bench.network.take(MOVING)
    bench.send(("c", "00:00:03"))
    bench.send(("still", "00:00:03"), speed=0.0)
    assert [came.shown["car"] for came in bench.network.take(MOVING)] == ["c"]


def test_windows_close_when_event_time_is_advanced(bench: Bench) -> None:
    """Not before, and boxes behind them read their results in the same step."""
    bench.send(("a", "00:00:01"), ("a", "00:00:59"), ("b", "00:00:30"))
    bench.advance("00:00:59.998")
    assert bench.counts() == []
    bench.advance("00:00:59.999")
    assert bench.counts() == [("a", 2), ("b", 1)]
    assert bench.counts(BUSY) == [("a", 2)]


def test_windows_close_by_the_rules_of_a_node(bench: Bench) -> None:
    """A record that is more than the lateness behind their end closes them."""
    bench.send(("a", "00:00:01"), ("b", "00:01:04.999"))
    assert bench.counts() == []
    bench.send(("b", "00:01:05"))
    assert bench.counts() == [("a", 1)]


def test_a_record_after_its_window_is_a_dead_letter(bench: Bench) -> None:
    """Reported once, though two fragments read it, with the record."""
    bench.send(("a", "00:00:01"))
    bench.advance("00:01:00")
    bench.send(("late", "00:00:02"))
    (dead_letter,) = bench.network.take_dead_letters()
    assert dead_letter.shown["stream"] == "sightings"
    assert dead_letter.shown["reason"] == "late"
    assert dead_letter.shown["record.car"] == "late"
    assert not bench.network.take_dead_letters()


def test_a_partition_without_records_blocks_event_time() -> None:
    """Until it is silent for as long as the stream defines, or the test advances event time."""
    bench = Bench(partitions=2)
    bench.send(("a", "00:00:01"), ("a", "00:05:00"))
    assert bench.counts() == []
    bench.network.wait(9_999)
    assert bench.counts() == []
    bench.network.wait(1)
    assert bench.counts() == [("a", 1)]
    advanced = Bench(partitions=2)
    advanced.send(("a", "00:00:01"), ("a", "00:05:00"))
    advanced.advance("00:01:00")
    assert advanced.counts() == [("a", 1)]


def test_event_time_advances_without_records(bench: Bench) -> None:
    """By the time that passes, from its present value: the lateness behind the newest record."""
    bench.send(("a", "00:00:50"))
    bench.network.wait(14_999)
    assert bench.counts() == []
    bench.network.wait(1)
    assert bench.counts() == [("a", 1)]


def test_silence_that_means_missing_stops_event_time() -> None:
    """However long it lasts; an advance of the test counts all the same."""
    bench = Bench(DOCUMENT.replace("lateness: 5s", "lateness: 5s, silence: missing"))
    bench.send(("a", "00:00:50"))
    bench.network.wait(3_600_000)
    assert bench.counts() == []
    bench.advance("00:01:00")
    assert bench.counts() == [("a", 1)]


def test_settling_closes_all_open_windows(bench: Bench) -> None:
    """However far apart; without records there is nothing to close."""
    bench.network.settle()
    bench.send(("a", "00:00:50"), ("b", "23:10:00"))
    bench.network.settle()
    assert bench.counts() == [("a", 1), ("b", 1)]
    bench.network.settle()
    assert bench.counts() == []


def test_an_advance_below_an_earlier_one_has_no_effect(bench: Bench) -> None:
    """Event time never falls."""
    bench.advance("00:02:00")
    bench.send(("a", "00:02:30"))
    bench.advance("00:01:00")
    assert bench.counts() == []
    bench.advance("00:03:00")
    assert bench.counts() == [("a", 1)]


def test_event_time_moves_before_the_first_record(bench: Bench) -> None:
    """A record below it is late, though nothing was read before."""
    bench.advance("00:02:00")
    bench.send(("late", "00:00:02"), ("a", "00:02:30"))
    (dead_letter,) = bench.network.take_dead_letters()
    assert dead_letter.shown["record.car"] == "late"


def test_all_queries_end_with_the_test(bench: Bench) -> None:
    """Also when one of them cannot be started."""
    bench.network.close()
    assert all(toy.closed for toy in bench.toys.started)

    class Broken(Toys):
        def __call__(self, lowered: Lowered, write: Write) -> RunningQuery:
            if self.started:
                raise RetryError("no more")
            return super().__call__(lowered, write)

    toys = Broken()
    checked = Checked(bench.streams, bench.schemas, {}, {}, ())
    with pytest.raises(RetryError):
        NetworkUnderTest(checked, toys)
    assert [toy.closed for toy in toys.started] == [True]


def test_an_error_in_a_lane_fails_the_step(bench: Bench) -> None:
    """A broken promise is reported as by a node."""

    def fail(*_: object) -> None:
        raise BrokenInvariantError("a record of a derived stream was late")

    for toy in bench.toys.started:
        toy.write = fail
    with pytest.raises(MedusaError, match="derived stream"):
        bench.send(("a", "00:00:01"))


def test_times_are_whole_milliseconds() -> None:
    """UTC without a zone, and exact before and after 1970."""
    assert time_of("1970-01-01T00:00:00.0019Z") == Millis(1)
    assert time_of("1969-12-31T23:59:59.999") == Millis(-1)
    assert time_of("2026-01-01T01:00:00+01:00") == time_of("2026-01-01")
