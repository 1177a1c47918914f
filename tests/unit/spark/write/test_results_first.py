"""Results that are visible before their marker."""

from dataclasses import dataclass, field, replace

import pytest

from brokers.memory_kafka.writers import MemoryProducer
from brokers.records import Headers
from pipeline.boundaries.next_batch import Batch as Planned
from pipeline.errors import BrokenInvariantError, FencedError, RefusedError, RetryError
from pipeline.ids import Epoch, Millis, Offset, TopicName
from pipeline.lanes.result_headers import LATE_RESULT, RESULT_ID, WRITTEN_TO
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.cut import Cut
from pipeline.reliability import Recovery
from pipeline.spark.write.results_first import ResultsFirst
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.transactions import InTransactions
from tests.unit.spark.write.sink_twins import (
    AT,
    NOW,
    Batch,
    ImmediateJobs,
    Log,
    Topics,
    facts,
    first,
    sink_context,
    stateless,
    write,
)

OUTPUT, MARKERS = "local.net.moving", "local.net.moving.markers"
FRAGMENT = replace(stateless(), recovery=Recovery.ROLLBACK)
ROWS = [(b"a", NOW + 1, None), (b"b", NOW + 2, None)]


class Results(MemoryProducer):
    """A producer of results; its calls are recorded."""

    def __init__(self, log: Log) -> None:
        super().__init__(log.kafka)
        self._log = log

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Record it."""
        self._log.note("result", topic)
        super().send(
            topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )

    def flush(self, timeout_s: float) -> None:
        """Record it."""
        assert timeout_s > 0
        self._log.note("flush")
        super().flush(timeout_s)

    def close(self) -> None:
        """Record it."""
        self._log.note("close")


@dataclass
class Lane:
    """A lane with rollback recovery, right after a marker."""

    log: Log = field(default_factory=Log)
    commits: ImmediateJobs = field(default_factory=ImmediateJobs)
    wrong: Exception | None = None
    epoch: int = 3
    begin: CommitMarker = field(default_factory=lambda: first(FRAGMENT))
    rolls_back: bool = True

    def __post_init__(self) -> None:
        topics = self.topics = Topics(self.log, self.wrong)
        context = sink_context(
            self.log,
            [],
            FRAGMENT,
            commits=self.commits,
            topics=topics,
            epoch=Epoch(self.epoch),
        )
        transactions = InTransactions(context)
        self.writer = ResultsFirst(context, transactions, lambda: Results(self.log))
        self.sink = Sink(context, self.writer if self.rolls_back else transactions)
        fails, self.log.fails = self.log.fails, {}
        self.sink.start(replace(self.begin, epoch=Epoch(self.epoch)))
        self.log.clear()
        self.log.fails = fails

    def plan(self, end: int, event_ms: int | None = None) -> None:
        """Plan a batch."""
        at_ms = None if event_ms is None else Millis(event_ms)
        self.sink.plan(Planned({AT: Offset(end)}, at_ms))

    @property
    def markers(self) -> list[CommitMarker]:
        """The markers written since its start."""
        values = self.log.values.get(MARKERS, [])
        return [codec.decode_marker(value or b"", "here") for value in values]

    @property
    def ids(self) -> list[bytes | None]:
        """The ids of the results."""
        return [headers.get(RESULT_ID) for headers in self.log.headers.get(OUTPUT, [])]


def test_the_cut_comes_first_and_the_marker_last() -> None:
    """The ids of the topics are compared before the first result; the boundary follows."""
    lane = Lane()
    lane.plan(5, NOW)
    assert lane.log.done == [("begin", ""), ("send", MARKERS), ("commit", "")]
    write(lane.sink, Batch(facts(0, 5), ROWS))
    assert lane.log.done[3:] == [
        ("same?", ""),
        ("result", OUTPUT),
        ("result", OUTPUT),
        ("flush", ""),
        ("begin", ""),
        ("send", MARKERS),
        ("same?", ""),
        ("commit", ""),
    ]
    cut, marker = lane.markers
    expected = Cut("3.0", {AT: Offset(5)}, NOW, 1)
    assert cut == replace(lane.begin, output="out-1", cut=expected, repeated=("out-1",))
    assert (marker.batch, marker.cut, lane.sink.marker) == (0, None, marker)
    assert marker.repeated == ("out-1",)
    assert marker.totals.records_out == len(set(lane.ids)) == len(ROWS)
    assert {headers[WRITTEN_TO] for headers in lane.log.headers[OUTPUT]} == {b"out-1"}


def test_the_results_of_a_repetition_have_the_same_ids() -> None:
    """Whoever goes on with the cut; its plan is not cut again."""
    lane = Lane(log=Log({"begin": RetryError("later")}))
    lane.log.fails = {}
    lane.plan(5, NOW)
    lane.log.fails = {"begin": RetryError("later")}
    write(lane.sink, Batch(facts(0, 5), ROWS))
    assert isinstance(lane.commits.failed, RetryError)
    (cut,), ids = lane.markers, lane.ids
    lane.log.fails = {}
    successor = Lane(log=lane.log, epoch=4, begin=cut)
    successor.plan(5, NOW)
    assert successor.log.done == []
    write(successor.sink, Batch(facts(0, 5), ROWS[::-1]))
    assert sorted(successor.ids) == sorted(ids)  # type: ignore[type-var]
    assert successor.sink.marker.batch == 0


def test_a_lane_that_is_precise_by_now_gives_the_ids_of_the_cut() -> None:
    """Results of the first try may be visible; those of the next batch have no id."""
    lane = Lane()
    lane.plan(5)
    (cut,) = lane.markers
    write(lane.sink, Batch(facts(0, 5), ROWS))
    ids = lane.ids
    successor = Lane(log=lane.log, epoch=4, begin=cut, rolls_back=False)
    write(successor.sink, Batch(facts(0, 5), ROWS))
    assert successor.ids == ids
    assert ("flush", "") not in successor.log.done
    successor.plan(6)
    write(successor.sink, Batch(facts(1, 6), ROWS))
    assert successor.ids == [*ids, None, None]


def test_a_fenced_lane_writes_no_results_of_a_batch_that_it_could_not_cut() -> None:
    """It learns of it when it commits the cut."""
    lane = Lane()
    Lane(log=lane.log, epoch=4, begin=lane.sink.marker)
    lane.plan(5)
    assert isinstance(lane.commits.failed, FencedError)
    with pytest.raises(FencedError):
        write(lane.sink, Batch(facts(0, 5), ROWS))
    assert OUTPUT not in lane.log.records


def test_results_are_not_written_without_a_cut() -> None:
    """The batch was not planned by this lane."""
    lane = Lane()
    write(lane.sink, Batch(facts(0, 5), ROWS))
    assert isinstance(lane.commits.failed, BrokenInvariantError)
    assert lane.log.done == []


def test_a_batch_that_ends_otherwise_than_it_was_cut_is_not_written() -> None:
    """Its results would have ids of others."""
    lane = Lane()
    lane.plan(5)
    lane.log.clear()
    write(lane.sink, Batch(facts(0, 6), ROWS))
    assert isinstance(lane.commits.failed, BrokenInvariantError)
    assert "batch 0 was cut at topic" in str(lane.commits.failed)
    assert lane.log.done == []


def test_a_batch_without_results_needs_no_producer() -> None:
    """Its marker follows on the cut at once."""
    lane = Lane()
    lane.plan(5)
    lane.log.clear()
    write(lane.sink, Batch(facts(0, 5)))
    assert [what for what, _ in lane.log.done] == ["begin", "send", "same?", "commit"]


def test_no_result_is_written_once_a_topic_is_recreated() -> None:
    """They may have been computed from records of the new one."""
    lane = Lane(wrong=RefusedError("made again"))
    lane.plan(5)
    write(lane.sink, Batch(facts(0, 5), ROWS))
    assert isinstance(lane.commits.failed, RefusedError)
    assert OUTPUT not in lane.log.records


@pytest.mark.parametrize("call", ["result", "flush"])
def test_results_that_were_not_delivered_leave_the_cut(call: str) -> None:
    """The marker follows only when the brokers have all of them."""
    lane = Lane(log=Log({call: RetryError("later")}))
    lane.plan(5)
    write(lane.sink, Batch(facts(0, 5), ROWS))
    assert isinstance(lane.commits.failed, RetryError)
    assert [one.cut is None for one in lane.markers] == [False]
    assert not lane.sink.undecided


def test_late_results_are_marked_as_by_a_transaction() -> None:
    """Beside their ids."""
    lane = Lane()
    lane.sink.pass_on(NOW)
    lane.plan(5)
    write(lane.sink, Batch(facts(0, 5), [(b"late", NOW, None), *ROWS]))
    marks = [headers.get(LATE_RESULT) for headers in lane.log.headers[OUTPUT]]
    assert marks == [b"%d" % NOW, None, None]
    assert None not in lane.ids


def test_a_repetition_is_written_to_the_partitions_of_its_cut() -> None:
    """More of them count from the next batch on, which a new producer writes."""
    lane = Lane()
    lane.plan(5)
    lane.topics.describe(OUTPUT, "out-1", partitions=4)
    places = [
        (3, Batch(facts(0, 5), ROWS, places=[3, 3])),
        (3, Batch(facts(1, 6), ROWS, places=[3, 3])),
    ]
    write(lane.sink, places[0][1])
    assert {record.partition for record in lane.log.records[OUTPUT]} == {0}
    lane.plan(6)
    write(lane.sink, places[1][1])
    assert [record.partition for record in lane.log.records[OUTPUT]] == [0, 0, 3, 3]
    assert lane.log.done.count(("close", "")) == 1
    lane.writer.close()
    lane.writer.close()
    assert lane.log.done.count(("close", "")) == 2


def test_a_marker_of_another_output_has_no_cut() -> None:
    """Nothing of the batch is in the new topic."""
    lane = Lane()
    lane.plan(5)
    (cut,) = lane.markers
    assert cut.with_output("out-1").cut == cut.cut
    assert cut.with_output("out-2").cut is None
